"""Every text that people may set: where it goes, and what keeps it harmless there.

A new field of a model, a form, or the API fails here until it has its line. What is
nasty is refused wherever it can be typed: pages, rows edited by hand, the API, and the
model itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
import yaml
from django import forms
from django.apps import apps
from django.core.exceptions import ValidationError
from django.db import models
from django.test import Client
from rest_framework.test import APIClient

import provisioner.urls  # noqa: F401 - so that every form there is has been imported
from provisioner.accounts.models import Team, User
from provisioner.catalog.actions.templates import check_definition
from provisioner.catalog.models import Template
from provisioner.lib.refusals import ActionRefused
from provisioner.sites.models import PerforceServer, Site
from tests.support.api_clients import api_of
from tests.support.browsers import browser_of
from tests.support.definitions import SERVER, SITE, definition
from tests.support.factories import (
    PerforceServerFactory,
    SiteFactory,
    TemplateFactory,
    UserFactory,
)
from tests.support.module_rows import Write, written_once

__all__ = ["written_once"]

pytestmark = pytest.mark.django_db

CONTROLS = ("a\nb", "a\rb", "a\x1b[2Jb", "a\x7fb", "a\u2028b", "a\0b")
OPENAPI = Path(__file__).parents[1] / "docs/openapi.yaml"


@dataclass(frozen=True, kw_only=True)
class Value:
    """`goes` is where it ends up, `by` what validates it; `nasty` is refused."""

    goes: str
    by: str
    nasty: tuple[Any, ...] = ()


ONTAP_NAMES = (
    "a b",
    "a*",
    "a|b",
    "!a",
    "a..b",
    "<a",
    ">1",
    "a,b",
    "a/b",
    "a&b",
    "",
    "Ⅷ",
)
HOSTS = (
    *("user@host", "host/path", "host#x", "host?x", "host:443", "https://host", "a b"),
    *("-h", "h\nX: y", "[::1", "h%0d", "hóst", "h\\x", "h;id"),
)
PATHS = ("relative", "/", "//a/b", "/a/../b", "/a\nb", "/a\0b", "~/x", "/" + 256 * "x")
DIRECTORIES = (
    *PATHS,
    *('/a"b', "/a#b", "/a@b", "/a*b", "/a%%1b", "/a/.../b"),
    *("/etc", "/etc/cron.d", "/usr/bin/x", "/proc/1/root", "/dev/x", "/var/spool/x"),
)
CLIENT_NASTY = ("a b", "10.0.0.0/24 *", "*", "a,b/c", "-a", "10.0.0.0/24(rw)", "a\tb")
COMMANDS = ("make\0", "\ud800")
ENVIRONMENTS = (
    *({"A=B": "x"}, {"": "x"}, {"A B": "x"}, {"A\0": "x"}, {"A": "x\0"}),
    *({"É": "x"}, {"LD_PRELOAD": "/x.so"}, {"LD_LIBRARY_PATH": "/x"}),
    *({"GLIBC_TUNABLES": "x"}, {"BASH_ENV": "/x"}, {"A": 1}, ["A"], "A"),
)

VALUES = {
    "PerforceServer.p4port": Value(
        goes="the library, which runs rsh: ports; .p4config; shells of people",
        by="models.values, a constraint, connection.py (see gateways/test_reach.py)",
        nasty=(
            *("rsh:/bin/sh -c id", "RSH:id", "jsh:id", "rsh:1666", "tcp:rsh:1666"),
            *("p:1666\nP4EDITOR=id", "p;id:1666", "perforce", "p:\u0661"),
        ),
    ),
    "PerforceServer.people_p4port": Value(
        goes="lines of .p4config; shells and libraries of people",
        by="models.values, a constraint",
        nasty=("rsh:/bin/sh -c id", "jsh:id", "p:1666\nP4EDITOR=id", "p;id:1666", "p"),
    ),
    "PerforceServer.p4user": Value(
        goes="the library's user; arguments of p4 (protects -u)",
        by="accounts.names, require_no_option",
        nasty=("-a", "a b", "a@b", "a#b", "a*", "a...", "a/b", 'a"b', "a=b", "a\nb"),
    ),
    "PerforceServer.maintenance_windows": Value(
        goes="croniter",
        by="models.values",
        nasty=("0 2 * *", "0 2 * * sun", "0 2 * * sun x", "r r * * * 5", "0 2 * * 0 0"),
    ),
    "PerforceServer.p4charset": Value(
        goes="the library's charset; .p4config",
        by="models.values; the library refuses what it does not know",
        nasty=("utf8\nP4EDITOR=id", "UTF8", "../utf8", "utf8;", "-utf8", "u t"),
    ),
    "PerforceServer.fingerprint": Value(
        goes="a line of P4TRUST",
        by="models.values",
        nasty=("AA:BB", "AA:" * 20, "x" * 59, f"{'AA:' * 19}AA\n0.0.0.0:1=**++**:x"),
    ),
    "PerforceServer.server_id": Value(
        goes="the ServerID of client specs; commands of p4 that pages show",
        by="models.values",
        nasty=("-a", "a b", "a\nb", "a;id", "a/b", "12", "a'b", "é"),
    ),
    "PerforceServer.read_access_host": Value(
        goes="an argument of p4 protects -h",
        by="GenericIPAddressField",
        nasty=("-h", "host", "1.2.3.4/8", "1.2.3.4\n"[:8] + "x"),
    ),
    "PerforceServer.name": Value(
        goes="names of variables that hold secrets, of queues",
        by="name_validator",
        nasty=("A", "a_b", "a b", "a.b", "-a", "a--b", "a\nb", "ß", "a=b"),
    ),
    "Site.name": Value(
        goes="names of variables that hold secrets, of queues, paths of rescues",
        by="name_validator",
        nasty=("A", "a_b", "../a", "a b", "-a", "a--b", "ß", "a.b"),
    ),
    "Site.title": Value(goes="pages and mails", by="accounts.names", nasty=CONTROLS),
    "Site.ontap_host": Value(
        goes="the origin of netapp_ontap's requests; getaddrinfo; TLS server name",
        by="models.values",
        nasty=HOSTS,
    ),
    "Site.ssh_host": Value(
        goes="a vscode: link of the page of a workspace, and its text",
        by="models.values",
        nasty=HOSTS,
    ),
    "Site.nfs_server": Value(
        goes="HOST of HOST:/PATH, which autofs and workers mount",
        by="models.values",
        nasty=HOSTS,
    ),
    "Site.ontap_user": Value(
        goes="HTTP Basic: a colon would begin the password",
        by="models.values",
        nasty=("a:b", "a b", "a\nb", "ü", "a\x7f"),
    ),
    "Site.ontap_ca_file": Value(
        goes="a path that OpenSSL and requests read",
        by="models.values",
        nasty=PATHS,
    ),
    "Site.svm": Value(
        goes="queries and bodies of REST: operators of queries are * | ! .. < > ,",
        by="models.values",
        nasty=ONTAP_NAMES,
    ),
    "Site.aggregate": Value(goes="as svm", by="models.values", nasty=ONTAP_NAMES),
    "Site.export_policy": Value(goes="as svm", by="models.values", nasty=ONTAP_NAMES),
    "Site.export_clients": Value(
        goes="client matches of export rules: who may mount",
        by="models.values, for each",
        nasty=tuple([each] for each in CLIENT_NASTY),
    ),
    "Site.worker_clients": Value(
        goes="client matches of export rules: who is root there",
        by="models.values, for each",
        nasty=tuple([each] for each in CLIENT_NASTY),
    ),
    "Site.networks": Value(
        goes="ipaddress.ip_network, compared with addresses of requests",
        by="models.values, for each",
        nasty=(["10.2.0.1/16"], ["10.2.0.0/33"], ["host"], ["0/0 x"]),
    ),
    "Site.mount_root": Value(
        goes="what workers touch as root lies below it; Root of clients; .p4config",
        by="models.values; a step refuses what is not the namespace of the SVM "
        "(hosts/namespace.py)",
        nasty=DIRECTORIES,
    ),
    "Site.rescue_root": Value(
        goes="where workers write rescues as root",
        by="models.values, Site.clean: outside the mount root",
        nasty=(*DIRECTORIES, "/clones", "/clones/x"),
    ),
    "Site.mount_options": Value(
        goes="shown to people for fstab; compared with /proc/mounts",
        by="hosts/mount_options.py: known options and their values",
        nasty=(
            "nocto",
            "vers=3 /etc",
            "vers=3;id",
            "sec=sys\nx",
            "$(id)",
            "soft",
            "nolock",
        ),
    ),
    "Template.name": Value(
        goes="names of volumes, snapshots, clients; junction paths; files of logs",
        by="name_validator",
        nasty=("A", "a_b", "../a", "a b", "-a", "a--b", "ß", "a.b", "a" * 41),
    ),
    "Template.description": Value(
        goes="pages and mails", by="accounts.names", nasty=CONTROLS
    ),
    "Template.view": Value(
        goes="View of client specs; queries of files",
        by="specs.check_view, render_client_spec",
        nasty=(
            *(
                "//depot/... //t/...\x0bOptions:",
                '//depot/"... //t/...',
                "//... //t/...",
            ),
            *(
                "//depot/a@1 //t/a",
                "//depot/../a //t/a",
                "depot/a //t/a",
                "//d/a\0 //t/a",
            ),
        ),
    ),
    "Template.stream": Value(
        goes="Stream of client specs; an argument of p4",
        by="specs.check_stream",
        nasty=("-d", "//s", "//s/*", "//s/a b", "//s/a@1", "//s/...", "//s/a\nOwner:x"),
    ),
    "Template.client_options": Value(
        goes="Options of client specs",
        by="specs.check_client_options",
        nasty=("locked", "a\nOwner: x", "noallwrite", "altsync"),
    ),
    "Template.submit_options": Value(
        goes="SubmitOptions of client specs",
        by="specs.check_submit_options",
        nasty=("x", "submitunchanged\nx: y", "submitunchanged x"),
    ),
    "Template.build_command": Value(
        goes="/bin/sh -c as the template's uid, in a sandbox",
        by="on purpose anything but what no command line holds",
        nasty=COMMANDS,
    ),
    "Template.test_command": Value(
        goes="as build_command", by="as build_command", nasty=COMMANDS
    ),
    "Template.build_environment": Value(
        goes="the environment of build and test, and of what starts them",
        by="templates._check_environment",
        nasty=ENVIRONMENTS,
    ),
    "Template.bisection_environment": Value(
        goes="the environment of commands of bisections, and of what starts them",
        by="as build_environment",
        nasty=ENVIRONMENTS,
    ),
    "Template.ignore_patterns": Value(
        goes=".cloneyardignore; a P4IGNORE file that the library reads",
        by="no null characters; a pattern can hide untracked files alone",
        nasty=("a\0b",),
    ),
    "Template.error_patterns": Value(
        goes="RE2, which searches logs for them in time linear in the log",
        by="error_lines.check_patterns",
        nasty=("a\0b", "(", "a(?=b)", "x{1000}{1000}"),
    ),
    "User.p4_user": Value(
        goes="arguments of p4 (login -p, protects -u); Owner of clients; .p4config",
        by="accounts.names, require_no_option",
        nasty=("-a", "a b", "a@b", "a*", "a\nP4PORT=x:1", "a=b", "a/b", "a..."),
    ),
    "User.username": Value(
        goes="as p4_user, where that is empty; names of workspaces",
        by="Django's validator; require_no_option; name_validator",
        nasty=("a b", "a\nb", "a/b", "a*", "a=b", 'a"b', "a#b"),
    ),
    "User.email": Value(
        goes="the To header of mails",
        by="EmailField; Django refuses line ends in headers",
        nasty=(
            "a",
            "a@b\nBcc: c@d.example",
            "a b@c.example",
            "a@b.example, c@d.example",
        ),
    ),
    "Team.name": Value(goes="pages", by="accounts.names", nasty=CONTROLS),
}

BY_ACTIONS = {
    "SavedView.name": "pages: web/actions.py, full_clean",
    "SavedView.listing": "compared alone: the name of a list",
    "SavedView.path": "a redirect: web/views.py, url_has_allowed_host_and_scheme",
    "SavedView.query": "read as an address by the list's own form",
    "SavedView.hidden": "compared with the columns of the list",
    "RescueRead.file": "a file of a rescue, one that its listing names",
    "RescueRead.problem": "written by the host worker that reads the rescue",
    "RescueRead.problem_message": "as problem",
    "Snapshot.hold_reason": "pages, mails: catalog/actions",
    "Snapshot.label": "pages, answers: catalog/actions",
    "Snapshot.notes": "pages, answers: catalog/actions",
    "Snapshot.withdraw_reason": "pages, mails: catalog/actions",
    "Template.archive_reason": "pages, answers: catalog/actions",
    "Template.title": "pages, mails: catalog/actions",
    "Workspace.name": "names of clients, volumes, paths: accounts/names.py",
    "Workspace.request_key": "compared alone: api/http.py REQUEST_KEY",
    "Workspace.keep_reason": "pages, mails: white space becomes one blank",
    "Bisection.command": "/bin/sh -c as its owner, in a sandbox: no null characters",
    "Maintenance.message": "every page: one line, accounts/names.py",
    "RefreshPolicy.cron": "croniter, five fields: lib/schedules.py",
    "RefreshPolicy.clean_cron": "croniter, five fields: lib/schedules.py",
    "Mirror.cron": "croniter, five fields: lib/schedules.py",
    "DedupePlan.cron": "croniter, five fields: lib/schedules.py",
    "DedupePlan.more_volumes": "names that ONTAP allows: efficiency/actions.py",
    "ProbePlan.commands": "arguments of p4: probes/commands.py",
    "ServerLog.path": "opened on the server's host: a whole path, no null characters",
    "LogUpload.name": "pages: one line, accounts/names.py; never a path",
    "ServerLog.time_zone": "a known zone: server_log/actions.py",
    "ServerLog.build_users": "compared alone: escaped, and * is any text",
    "Moment.label": "pages: one line, accounts/names.py",
    "Moment.note": "pages: probes/actions.py, storable",
    "CheckpointPlan.directory": "a whole path: models.values; used as the host's uid",
    "CheckpointPlan.cron": "croniter, five fields: lib/schedules.py",
    "VerificationPlan.cron": "croniter, five fields: lib/schedules.py",
    "DrillPlan.cron": "croniter, five fields: lib/schedules.py",
    "DrillVolume.source": "names of the server's volumes: drills/actions.py",
    "DrillVolume.replica": "names that ONTAP allows: drills/actions.py",
    "ServerVolume.volume": "names that ONTAP allows: sandboxes/actions.py",
    "ServerVolume.path": "a path below a clone: sandboxes/actions.py, never outside",
    "P4dVersion.release": "compared with what p4d says of itself: sandboxes/actions.py",
    "P4dVersion.path": "started as an unprivileged user, without a shell",
    "SandboxHost.name": "a queue: accounts/names.py",
    "SandboxHost.address": "P4PORT of sandboxes: models.values",
    "Sandbox.name": "names of clones and junctions: accounts/names.py",
    "Sandbox.server_id": "an argument of p4d -xD: models.values",
    "QualificationRun.note": "pages",
    "ProgramRelease.program": "pages, mails: one line, insight/actions.py",
    "ProgramRelease.minimum": "pages, mails: a release, insight/actions.py",
    "ProgramRelease.recommended": "pages, mails: a release, insight/actions.py",
    "Pool.windows": "lib/weekly.py reads each",
    "Webhook.url": "gateways/webhooks/addresses.py: no inside, no passwords, ASCII",
    "Webhook.events": "one of WebhookEvent",
    "SlotBudget.paused_reason": "pages",
    "Event.reason": "pages",
    "Identity.issuer": "OIDC_ISSUER, LDAP_USER_BASE or P4_SIGN_IN_SERVER",
    "Identity.subject": "compared alone: a signed token or the directory says it",
    "ApiToken.name": "pages: white space becomes one blank",
    "ApiToken.purposes": "one of Workspace.Purpose",
    "User.time_zone": "zoneinfo: accounts/zones.py knows the names",
    "User.password": "hashed by Django",
    "User.first_name": "pages; identities/actions.py makes it one line",
    "User.last_name": "pages; identities/actions.py makes it one line",
}
"""Set by people through actions alone, or kept by Django; tested at those."""

OURS = {
    "DirectorySync": "state message",
    "DirectoryChange": "action sentence",
    "ApiToken": "digest token_key",
    "Session": "session_key session_data name ip user_agent",
    "DriftCheck": "system status_message",
    "QualificationRun": "name profile state status_code status_message release summary",
    "PhaseTime": "phase",
    "HostRound": "host token",
    "RunFigure": "code",
    "Bisection": "state status_code status_message",
    "BisectionChange": "user title",
    "Transfer": "plan shelves changes counts outcome",
    "AggregateDay": "name",
    "AggregateSpace": "name node",
    "TemplatePlace": "tiering_policy",
    "Move": "source destination",
    "Ceiling": "purpose kept_as status_message",
    "VolumePolicy": "autosize_mode guarantee security_style status_message",
    "ConnectionCheck": "about_host name outcome sentence advice",
    "ConnectionTest": "place host",
    "Conflict": "kind path sentence commands",
    "Event": "kind message actor_name via ip user_agent subject_kind subject data",
    "Finding": "kind subject external_id volume_uuid snapshot tag_kind sentence "
    "details action status_message resolution",
    "LeasePolicy": "purpose",
    "LimitDay": "code",
    "LockWait": "command table",
    "ServerLoad": "tables commands maintenance",
    "NotificationChoice": "topic",
    "Notification": "p4_user address kind data sent_to void_reason",
    "DedupePlan": "ontap_policy status",
    "DedupeVolume": "ontap_uuid name kind",
    "DedupeRun": "state message",
    "ReductionDay": "kind",
    "Mirror": "name volume_uuid aggregate chosen_aggregate relationship_uuid "
    "former_client start state status_code status_message trouble",
    "WorkspaceCopy": "name volume_uuid aggregate relationship_uuid state status_code "
    "status_message",
    "CopiedSnapshot": "name opened descriptions have_differences",
    "CopyRule": "purposes",
    "ServerVolume": "role",
    "Sandbox": "purpose release p4d_path state status_code status_message consistency "
    "defanged upgraded_from",
    "SandboxVolume": "source replicated snapshot_uuid clone_uuid",
    "Drill": "trouble finding",
    "SandboxPlace": "role path",
    "CheckpointPlan": "status",
    "VerificationPlan": "status",
    "DrillPlan": "status",
    "Checkpoint": "path sha256 md5 tables remark removed_because",
    "VerifiedDepot": "name kind left_out",
    "DamagedFile": "path status",
    "WorkspaceClone": "snapshot_name opened descriptions have_differences",
    "SnapshotPolicy": "purpose",
    "ClientListing": "trouble",
    "ListedClient": "name owner host kind whole_lines",
    "ClientReading": "opened descriptions have_differences",
    "WorkspaceSnapshot": "name ontap_uuid deleted_because",
    "Recovery": "snapshot_name opened descriptions have_differences",
    "Operation": "kind state parameters status_code status_message findings "
    "request_id traceparent",
    "Pool": "purpose status_message",
    "PerforceServer": "kind when_behind",
    "Process": "state user program client host command arguments gone_host",
    "ProcessEnding": "user command state message",
    "ProbeRun": "host gap",
    "ProbeTime": "command error",
    "ProbeWeek": "command",
    "ReportMail": "subject text trouble",
    "ProcessReading": "trouble",
    "ProgramMail": "p4_user outdated address trouble",
    "ProgramUse": "program release user host",
    "RefreshPolicy": "mode",
    "Rescue": "directory archive_sha256 archive_seen shelves reverted descriptions "
    "have_differences inventory",
    "RoutingRule": "purpose when_behind",
    "ServerAbilities": "client_types",
    "ServerConfiguration": "trouble version wide_paths host",
    "ServerFilesystem": "name fs_type mount_point mount_options",
    "LogFile": "head",
    "ServerLog": "head left_open loose_ends running trouble way",
    "LogUpload": "state message",
    "LogCommand": "user client host program command arguments origin",
    "LogTableUse": "user client command origin table",
    "LogMessage": "kind operation text",
    "SeenCheckpoint": "what",
    "RepeatedCommand": "user program client command origin",
    "LogSum": "span by name origin",
    "LockSum": "span by table user command origin",
    "ServerSetting": "name value source",
    "ServerWatch": "last_error",
    "SignInAttempts": "key",
    "Site": "reown clones_open_to mounting",
    "SiteCapacity": "ontap_version status_message",
    "Snapshot": "name ontap_uuid client_spec have_digest quality parts sample remarks",
    "MirroredSnapshot": "ontap_uuid state",
    "Subject": "kind",
    "Step": "name state perforce_use progress ontap_job_uuid flush_place result "
    "error_code error_message",
    "SubmittedChange": "user title",
    "Template": "line_end wanted_quality state status_code status_message volume_uuid "
    "aggregate routed_as routed_because",
    "TemplateCheck": "remarks error",
    "TemplateWatch": "view",
    "TokenUse": "kind",
    "TrafficDay": "purpose",
    "BisectionStep": "verdict reason",
    "Webhook": "salt disabled_reason format",
    "WebhookDelivery": "event body request_id traceparent state response_text error",
    "WorkerQueues": "queues own host kernel nfs_uses release",
    "Workspace": "remote_name purpose client_type request_fingerprint cold_reason "
    "p4_user state status_code status_message volume_uuid aggregate cloned_from "
    "ownership secret opened_to root_mode reconcile activity client_seen client_mark "
    "client_suffix routed_as routed_because site_because",
    "WorkspaceClient": "state spec",
}
"""Written by our own code, or one of choices."""

ASKED = "asked for: compared with columns, as a parameter of SQL"
HASHED = "hashed by Django"
CHOSEN = "one of rows or of choices"
ANNOUNCED = {
    "message": "Maintenance.message",
    **dict.fromkeys(("starts_at", "ends_at"), "a time: Django"),
}
TYPED = {
    # forms
    "AdminSignInForm": {"username": ASKED, "password": ASKED},
    "SignInForm": {"username": ASKED, "password": ASKED},
    "WorkspaceCreateForm": {
        **dict.fromkeys(("purpose", "site", "snapshot", "quality"), CHOSEN),
        "name": "Workspace.name",
        "request_key": "Workspace.request_key",
    },
    "TemplateCreateForm": {"site": CHOSEN, "name": "Template.name"},
    "TemplateDefinitionForm": {"volume_size_bytes": "a number: lib/sizes.py"},
    "VolumePolicyForm": dict.fromkeys(
        ("autosize_mode", "guarantee", "fractional_reserve", "security_style"), CHOSEN
    ),
    "TemplateBuildForm": {"paths": "arguments of p4: templates._checked_paths"},
    "QuotaForm": {
        **dict.fromkeys(("workspaces", "space"), CHOSEN),
        "max_unique_bytes": "a number: lib/sizes.py",
    },
    "AccountForm": {
        **dict.fromkeys(("team", "standing"), CHOSEN),
        **{"email": "User.email", "p4_user": "User.p4_user"},
    },
    "NewAccountForm": {"username": "User.username", "password": HASHED},
    "MaintenanceForm": ANNOUNCED,
    "MaintenanceCreateRequest": ANNOUNCED,
    "GivenPasswordForm": {"password": HASHED},
    "ChosenPasswordForm": dict.fromkeys(("new_password1", "new_password2"), HASHED),
    "ForgottenForm": {"email": ASKED},
    "TeamChoiceForm": {"team": CHOSEN},
    "SpanForm": {"range": CHOSEN},
    "ViewForm": {"name": "SavedView.name"},
    "TeamChangeForm": {"team": CHOSEN},
    "RoleChangeForm": {"standing": CHOSEN},
    "HomeSiteForm": {"home_site": CHOSEN},
    "PreferencesForm": {"home_site": CHOSEN, "time_zone": "User.time_zone"},
    "TeamForm": {"name": "Team.name", "home_site": CHOSEN},
    "BisectionCreateForm": {"command": "Bisection.command"},
    "TransferForm": {"snapshot": CHOSEN, "name": "Workspace.name"},
    "LeaseExtendForm": {"span": CHOSEN},
    "LeaseKeepForm": {"reason": "Workspace.keep_reason"},
    "LeasePolicyForm": {
        **dict.fromkeys(("template", "purpose"), CHOSEN),
        **dict.fromkeys(
            ("default_seconds", "maximum_seconds", "warn_seconds", "trash_seconds"),
            "a span: lib/spans.py",
        ),
        "seal": "compared alone",
    },
    "RefreshPolicyForm": {
        "mode": CHOSEN,
        "cron": "RefreshPolicy.cron",
        "clean_cron": "RefreshPolicy.clean_cron",
        "quiet_seconds": "a span: lib/spans.py",
        "every_seconds": "a span: lib/spans.py",
    },
    "PauseForm": {"reason": "SlotBudget.paused_reason"},
    "RefreshPauseForm": {"server": CHOSEN, "do": CHOSEN},
    "ReasonForm": {"reason": "Snapshot.hold_reason"},
    "OptionalReasonForm": {"reason": "Snapshot.withdraw_reason"},
    "OptionalReasonRequest": {"reason": "Snapshot.withdraw_reason"},
    "ReasonRequest": {"reason": "Snapshot.hold_reason"},
    "TemplateOwnerForm": {"owner": ASKED},
    "SnapshotDescribeForm": {"notes": "Snapshot.notes", "label": "Snapshot.label"},
    "PatchedSnapshotDescribeRequest": {
        "notes": "Snapshot.notes",
        "label": "Snapshot.label",
    },
    "TemplateRenameForm": {"title": "Template.title"},
    "PatchedTemplateChangeRequest": {"title": "Template.title", "owner": ASKED},
    "PoolChangeForm": {
        "windows": "Pool.windows",
        "max_age_seconds": "a span: lib/spans.py",
        "idle_seconds": "a span: lib/spans.py",
    },
    "RoutingRuleForm": {
        **dict.fromkeys(("purpose", "team", "site", "server", "when_behind"), CHOSEN),
        "account": ASKED,
    },
    "RoutingRuleRequest": dict.fromkeys(
        ("purpose", "account", "team", "site", "server", "when_behind"), CHOSEN
    ),
    "MirrorTemplateForm": {"template": CHOSEN},
    "MirrorChangeForm": {"start": CHOSEN, "cron": "Mirror.cron"},
    "MirrorCreateForm": {
        **dict.fromkeys(("site", "aggregate"), CHOSEN),
        "cron": "Mirror.cron",
    },
    "MirrorTransferForm": {"snapshot": CHOSEN},
    "CopyRuleForm": {"purposes": CHOSEN},
    "RecoverForm": {"name": "Workspace.name"},
    "PoolCreateForm": {
        "template": CHOSEN,
        "site": CHOSEN,
        "purpose": CHOSEN,
        "owner": ASKED,
    },
    "TokenForm": {
        "name": "ApiToken.name",
        "templates": CHOSEN,
        "purposes": CHOSEN,
        "max_lease_seconds": "a span: lib/spans.py",
    },
    "WebhookChangeForm": {"url": "Webhook.url", "events": CHOSEN},
    "WebhookCreateForm": {"template": CHOSEN, "format": CHOSEN},
    "ShareForm": {"kind": CHOSEN, "name": ASKED, "span": CHOSEN},
    "UnsubmittedForm": {"unsubmitted": CHOSEN},
    "LogForm": {"q": "plain text: engine/logs/search.py", "wrap": CHOSEN},
    "NewPasswordForm": dict.fromkeys(
        ("old_password", "new_password1", "new_password2"), ASKED
    ),
    "OpenForm": {"to": CHOSEN},
    "CloneForm": {"name": "Workspace.name", "owner": ASKED, "snapshot": CHOSEN},
    "TakeBackForm": {"path": "a path: lib/inner_paths.py"},
    "TakeBackRequest": {"path": "a path: lib/inner_paths.py"},
    "SnapshotPolicyForm": dict.fromkeys(("site", "template", "purpose"), CHOSEN),
    "SnapshotPolicyRequest": {"site": CHOSEN},
    "MoveForm": {"aggregate": CHOSEN},
    "SplitPolicyForm": {"pinned_bytes": "a size"},
    "DedupePlanForm": {
        "cron": "DedupePlan.cron",
        "more_volumes": "DedupePlan.more_volumes",
    },
    "ProbePlanForm": {"commands": "ProbePlan.commands"},
    "SandboxForm": {
        **dict.fromkeys(("server", "purpose", "version", "host"), CHOSEN),
        "name": "Sandbox.name",
        "server_id": "Sandbox.server_id",
        "reason": "Event.reason",
    },
    "BaselineForm": {"profile": CHOSEN, "note": "QualificationRun.note"},
    "RunForm": {
        **dict.fromkeys(("profile", "sandbox", "server", "template"), CHOSEN),
        "is_cold": CHOSEN,
        "note": "QualificationRun.note",
    },
    "ServerVolumesForm": {"site": CHOSEN, "places": "ServerVolume.path"},
    "P4dVersionForm": {"release": "P4dVersion.release", "path": "P4dVersion.path"},
    "SandboxHostForm": {
        "site": CHOSEN,
        "name": "SandboxHost.name",
        "address": "SandboxHost.address",
    },
    "SandboxPolicyForm": {"team": CHOSEN},
    "PlanForm": {
        **dict.fromkeys(("host", "version"), CHOSEN),
        "cron": "CheckpointPlan.cron",
    },
    "CheckpointPlanForm": {"directory": "CheckpointPlan.directory"},
    "DrillPlanForm": {"replicas": "DrillVolume.replica"},
    "LogUploadForm": {"file": "LogUpload.name"},
    "ServerLogForm": {
        "way": CHOSEN,
        "path": "ServerLog.path",
        "time_zone": "ServerLog.time_zone",
        "build_users": "ServerLog.build_users",
    },
    "ReportMailForm": {"people": "usernames: probes/actions.py"},
    "MomentForm": {
        "server": CHOSEN,
        "label": "Moment.label",
        "at": "a time: Django",
        "note": "Moment.note",
    },
    "ComparisonForm": {
        **dict.fromkeys(("what", "moment", "server"), CHOSEN),
        **dict.fromkeys(
            ("before_since", "before_until", "after_since", "after_until"),
            "a time: Django",
        ),
    },
    "FreeSpaceForm": {"site": CHOSEN, "wanted_bytes": "a size"},
    "ProgramReleaseForm": {
        "program": "ProgramRelease.program",
        "minimum": "ProgramRelease.minimum",
        "recommended": "ProgramRelease.recommended",
    },
    "PerforceServerForm": dict.fromkeys(("kind", "upstream", "when_behind"), CHOSEN),
    "SiteForm": dict.fromkeys(
        ("perforce_server", "reown", "clones_open_to", "mounting"), CHOSEN
    ),
    **dict.fromkeys(
        (
            *("SearchForm", "AbandonedFilterForm", "WorkspaceFilterForm"),
            *("TemplateFilterForm", "BisectionFilterForm", "FindingFilterForm"),
            *("OwnWorkspaceFilterForm", "AuditLogFilterForm", "OperationFilterForm"),
            *("PeopleFilterForm", "MirrorFilterForm", "MirroredSnapshotFilterForm"),
            *("TrafficFilterForm", "SnapshotFilterForm", "ProcessFilterForm"),
            *("DedupeRunFilterForm", "ReductionFilterForm", "ProbeTimeFilterForm"),
            *("ProgramFilterForm", "TimesForm", "SandboxFilterForm"),
            *("ClientAdviceFilterForm", "CheckpointFilterForm"),
            *("VerificationFilterForm", "DamagedFilterForm", "RunFilterForm"),
            *("DrillFilterForm", "ProbeRoundFilterForm"),
        ),
        dict.fromkeys(
            (
                *("q", "state", "owner", "template", "kind", "actor", "subject", "by"),
                *("since", "until", "role", "team", "gone", "archived", "ends"),
                "older_than",
                *("behind", "issue", "purpose", "site", "server", "at_least", "days"),
                *("failed", "advice", "kept", "damage", "status", "profile"),
                *("order", "command", "user", "client", "host", "program", "table"),
                *("whose", "at_least_rows", "has_failed", "outcome"),
            ),
            ASKED,
        ),
    ),
    # the API
    "BisectionCreateRequest": {"site": ASKED, "command": "Bisection.command"},
    "TransferRequestRequest": {"name": "Workspace.name"},
    "LeaseExtendRequest": {"until": "a time"},
    "LeaseKeepRequest": {"reason": "Workspace.keep_reason"},
    "LeasePolicySaveRequest": {"seal": "compared alone"},
    "SpacePlanRequestRequest": {"seal": "compared alone", "site": ASKED},
    "CeilingSaveRequest": {"site": ASKED},
    "VolumePolicySaveRequest": {"site": ASKED, "template": ASKED},
    "MoveRequestRequest": {"aggregate": ASKED},
    "MirrorCreateRequest": {
        **dict.fromkeys(("site", "aggregate"), ASKED),
        "cron": "Mirror.cron",
    },
    "PatchedDedupePlanChangeRequest": {
        "cron": "DedupePlan.cron",
        "more_volumes": "DedupePlan.more_volumes",
    },
    "ReportMailsCreateRequest": {
        **dict.fromkeys(("what", "server", "moment"), ASKED),
        **dict.fromkeys(
            ("before_since", "before_until", "after_since", "after_until"), "a time"
        ),
        "people": "usernames: probes/actions.py",
    },
    "MomentCreateRequest": {
        "server": ASKED,
        "label": "Moment.label",
        "at": "a time: Django",
        "note": "Moment.note",
    },
    "PatchedProgramReleaseChangeRequest": {
        "program": "ProgramRelease.program",
        "minimum": "ProgramRelease.minimum",
        "recommended": "ProgramRelease.recommended",
    },
    "PatchedProbePlanChangeRequest": {"commands": "ProbePlan.commands"},
    "BaselineCreateRequest": {
        **dict.fromkeys(("profile", "server", "version", "host"), CHOSEN),
        "name": "Sandbox.name",
        "note": "QualificationRun.note",
    },
    "QualificationRunCreateRequest": {
        **dict.fromkeys(("profile", "sandbox", "server", "template"), CHOSEN),
        "note": "QualificationRun.note",
    },
    "SandboxCreateRequest": {
        **dict.fromkeys(("server", "version", "host"), ASKED),
        "name": "Sandbox.name",
        "server_id": "Sandbox.server_id",
        "reason": "Event.reason",
    },
    "PatchedDrillPlanSaveRequest": {
        **dict.fromkeys(("host", "version"), ASKED),
        "replicas": "DrillVolume.replica",
        "cron": "DrillPlan.cron",
    },
    "DrillStartRequest": {"server": ASKED},
    "RecipeStartRequest": {"server": ASKED},
    "PatchedVerificationPlanSaveRequest": {
        **dict.fromkeys(("host", "version"), ASKED),
        "cron": "VerificationPlan.cron",
    },
    "PatchedCheckpointPlanSaveRequest": {
        **dict.fromkeys(("host", "version"), ASKED),
        "directory": "CheckpointPlan.directory",
        "cron": "CheckpointPlan.cron",
    },
    "P4dVersionSaveRequest": {
        "release": "P4dVersion.release",
        "path": "P4dVersion.path",
    },
    "SandboxHostSaveRequest": {
        "site": ASKED,
        "name": "SandboxHost.name",
        "address": "SandboxHost.address",
    },
    "SandboxPolicySaveRequest": {"team": ASKED},
    "ServerVolumesSaveRequest": {
        **dict.fromkeys(("server", "site"), ASKED),
        "places": "ServerVolume.path",
    },
    "PatchedServerLogChangeRequest": {
        "path": "ServerLog.path",
        "time_zone": "ServerLog.time_zone",
        "build_users": "ServerLog.build_users",
    },
    "PatchedMirrorChangeRequest": {"cron": "Mirror.cron"},
    "WorkspaceCloneRequest": {"owner": ASKED, "name": "Workspace.name"},
    "RecoveryRequest": {"site": ASKED, "name": "Workspace.name"},
    "PatchedPoolChangeRequest": {"windows": "Pool.windows"},
    "PatchedWebhookChangeRequest": {"url": "Webhook.url"},
    "PauseRequest": {"reason": "SlotBudget.paused_reason"},
    "PoolCreateRequest": {"windows": "Pool.windows", "site": ASKED, "owner": ASKED},
    "RefreshSaveRequest": {
        "cron": "RefreshPolicy.cron",
        "clean_cron": "RefreshPolicy.clean_cron",
    },
    "ResumeRequest": {"reason": "Event.reason"},
    "ShareCreateRequest": {"person": ASKED, "team": ASKED, "ends_at": "a time"},
    "TemplateBuildRequest": {
        "paths": "arguments of p4: templates._checked_paths",
    },
    "TemplateCreateRequest": {"site": ASKED, "name": "Template.name"},
    "TicketRequest": {
        "p4_user": "the library's user, for p4 login -s without arguments",
        "ticket": "the library's password: tickets.TICKET, hexadecimal",
        "server": ASKED,
    },
    "TokenCreateRequest": {"name": "ApiToken.name", "templates": ASKED},
    "WebhookCreateRequest": {"url": "Webhook.url"},
    "WorkspaceCreateRequest": {"site": ASKED, "name": "Workspace.name"},
}
"""Forms and bodies of requests; fields named as a model's own are that model's."""

MODEL_OF = {
    "SiteForm": Site,
    "PerforceServerForm": PerforceServer,
    "TemplateDefinitionForm": Template,
    "TemplateCreateForm": Template,
    "TemplateCreateRequest": Template,
}
_TEXTS = (
    *(models.CharField, models.TextField, models.JSONField),
    models.GenericIPAddressField,
    models.FileField,
)
_NUMBERS = (forms.IntegerField, forms.BooleanField, forms.DateField)


def texts_of_models() -> Iterator[str]:
    for model in apps.get_models():
        if model.__module__.startswith("provisioner."):
            for field in model._meta.concrete_fields:
                if isinstance(getattr(field, "base_field", field), _TEXTS):
                    yield f"{model.__name__}.{field.name}"


def test_every_text_of_every_model_has_its_line() -> None:
    ours = {
        f"{model}.{name}" for model, names in OURS.items() for name in names.split()
    }
    lines = [*VALUES, *BY_ACTIONS, *ours]
    assert sorted(lines) == sorted(set(lines)), "one line each"
    assert set(texts_of_models()) == set(lines)


def all_forms(form: type[Any] = forms.BaseForm) -> Iterator[type[Any]]:
    for each in form.__subclasses__():
        if each.__module__.startswith("provisioner."):
            yield each
        yield from all_forms(each)


def test_every_text_of_every_form_has_its_line() -> None:
    for form in set(all_forms()):
        texts = {
            name
            for name, field in getattr(form, "base_fields", {}).items()
            if not isinstance(field, _NUMBERS)
        }
        assert not texts - known_of(*(each.__name__ for each in form.__mro__)), form


def test_every_text_of_every_request_has_its_line() -> None:
    schemas = yaml.safe_load(OPENAPI.read_text())["components"]["schemas"]
    for name, schema in schemas.items():
        if name.endswith("Request"):
            texts = {
                each
                for each, field in schema.get("properties", {}).items()
                if is_text(field, schemas)
            }
            # Templates and snapshots are named by numbers and names, and looked up.
            assert not texts - known_of(name) - {"template", "snapshot"}, name


def known_of(*names: str) -> set[str]:
    known: set[str] = set()
    for name in names:
        known |= TYPED.get(name, {}).keys()
        if name in MODEL_OF:
            lines = (
                *VALUES,
                *(f"Template.{each}" for each in OURS["Template"].split()),
            )
            model = MODEL_OF[name].__name__
            known |= {
                each.split(".")[1] for each in lines if each.startswith(f"{model}.")
            }
    return known


def is_text(field: dict[str, Any], schemas: dict[str, Any]) -> bool:
    """Return whether a field of the schema can hold any text."""
    for wrapped in ("allOf", "oneOf", "anyOf"):
        if wrapped in field:
            return any(is_text(each, schemas) for each in field[wrapped])
    if "$ref" in field:
        return is_text(schemas[field["$ref"].rpartition("/")[2]], schemas)
    if "items" in field:
        return is_text(field["items"], schemas)
    return field.get("type") in ("string", "object") and "enum" not in field


def nasty_of(*models: type[models.Model]) -> list[Any]:
    names = {model.__name__ for model in models}
    return [
        pytest.param(name, nasty, id=f"{name}-{nasty!r:.40}".replace("\0", "0"))
        for name, value in VALUES.items()
        if name.split(".")[0] in names
        for nasty in value.nasty
    ]


ROWS: dict[str, Callable[[], models.Model]] = {
    "PerforceServer": PerforceServerFactory.create,
    "Site": lambda: SiteFactory.create(mount_root="/clones"),
    "Template": TemplateFactory.create,
    "User": UserFactory.create,
    "Team": lambda: Team.objects.create(name="team"),
}


@pytest.mark.parametrize("name", [name for name, it in VALUES.items() if it.nasty])
def test_the_model_refuses(name: str) -> None:
    model, field = name.split(".")
    row = ROWS[model]()
    if field == "stream":
        row.view = ""  # type: ignore[attr-defined]  # only templates have it
    check = check_definition if isinstance(row, Template) else models.Model.full_clean
    for nasty in VALUES[name].nasty:
        setattr(row, field, nasty)
        try:
            check(row)  # type: ignore[arg-type]  # each of its own kind
        except (ValidationError, ActionRefused):
            continue
        pytest.fail(f"{nasty!r} is accepted")


def typed(nasty: Any) -> Any:
    """Return what somebody would send by a form to say this."""
    if isinstance(nasty, dict):
        return "\n".join(f"{name}={value}" for name, value in nasty.items())
    return nasty


def is_sendable(nasty: Any) -> bool:
    """Return whether a form says it at all, and not something harmless instead."""
    if isinstance(nasty, dict):
        return all(name.isidentifier() and value != 1 for name, value in nasty.items())
    return isinstance(nasty, str) and nasty.isprintable()


def sign_in() -> SimpleCookie:
    admin = UserFactory.create(is_staff=True, is_superuser=True)
    return browser_of(admin).cookies


@pytest.fixture(scope="module")
def cookies(written_once: Write[SimpleCookie]) -> SimpleCookie:
    """What the browser of an administrator keeps, who signs in once for all tests."""
    return written_once(sign_in)


@pytest.fixture
def pages(db: None, cookies: SimpleCookie) -> Client:
    browser = Client()
    browser.cookies = deepcopy(cookies)
    return browser


@pytest.fixture
def api(admin: User) -> APIClient:
    return api_of(admin)


def rounds_of(model: type[models.Model]) -> list[dict[str, Any]]:
    """Return all nasty values, one of each field at a time."""
    fields = {
        name.split(".")[1]: value.nasty
        for name, value in VALUES.items()
        if name.startswith(f"{model.__name__}.") and value.nasty
    }
    return [
        {field: nasty[number] for field, nasty in fields.items() if number < len(nasty)}
        for number in range(max(map(len, fields.values())))
    ]


def check_page_refuses(
    browser: Client, address: str, nasty: dict[str, Any], *, good: dict[str, Any]
) -> None:
    """Ensure that a page names the field of each value, or else refuses it alone."""
    answer = browser.post(address, {**good, **nasty})
    assert answer.status_code in (200, 422)
    of_admin = "adminform" in answer.context
    form = answer.context["adminform"].form if of_admin else answer.context["form"]
    for field in nasty.keys() - form.errors.keys():
        answer = browser.post(address, {**good, field: nasty[field]})
        assert answer.status_code in (200, 422), (field, nasty[field])


@pytest.mark.parametrize(
    "address", ["/perforce/new/", "/admin/sites/perforceserver/add/"]
)
def test_pages_of_servers_refuse(address: str, pages: Client) -> None:
    for nasty in rounds_of(PerforceServer):
        check_page_refuses(pages, address, nasty, good=SERVER)
    assert not PerforceServer.objects.exists()


@pytest.mark.parametrize("address", ["/sites/new/", "/admin/sites/site/add/"])
def test_pages_of_sites_refuse(address: str, pages: Client) -> None:
    server = PerforceServerFactory.create()
    good = {**SITE, "export_clients": "10.0.0.0/24", "perforce_server": server.pk}
    for nasty in rounds_of(Site):
        for field, value in [*nasty.items()]:
            if isinstance(value, list):
                [nasty[field]] = value
                if set(value[0]) & set(" \t,") and "admin" not in address:
                    del nasty[field]  # a page takes them for several
        check_page_refuses(pages, address, nasty, good=good)
    assert not Site.objects.exists()


@pytest.mark.parametrize(("name", "nasty"), nasty_of(Template))
def test_pages_of_templates_refuse(name: str, nasty: Any, pages: Client) -> None:
    if not is_sendable(nasty):
        pytest.skip("no form can say it")
    field = name.split(".")[1]
    sent = {
        **definition(name="main", site=SiteFactory.create().pk),
        field: typed(nasty),
    }
    if field == "stream":
        sent["view"] = ""
    answer = pages.post("/templates/new/", sent)
    assert answer.status_code in (409, 422)
    assert not Template.objects.exists()


@pytest.mark.parametrize(("name", "nasty"), nasty_of(Template))
def test_the_api_of_templates_refuses(name: str, nasty: Any, api: APIClient) -> None:
    field = name.split(".")[1]
    sent = {"name": "main", "site": SiteFactory.create().name, field: nasty}
    if field not in ("view", "stream"):
        sent["view"] = "//depot/main/... //template/..."
    body = json.dumps(sent)
    answer = api.post("/api/v1/templates", body, content_type="application/json")
    assert answer.status_code == 400
    assert not Template.objects.exists()


@pytest.mark.parametrize(("name", "nasty"), nasty_of(User))
def test_pages_of_accounts_refuse(name: str, nasty: str, pages: Client) -> None:
    account = UserFactory.create()
    sent = {"username": account.username, "email": "a@b.example", "uid": 1, "gid": 1}
    named = {**sent, name.split(".")[1]: nasty}
    page = f"/admin/accounts/user/{account.pk}/change/"
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    pages.post(page, {**named, **joined})
    usual = {"standing": "developer", "workspaces": "none", "space": "none"}
    pages.post(f"/people/{account.pk}/edit/", {**named, **usual})
    before = (account.username, account.email, account.p4_user)
    account.refresh_from_db()
    assert (account.username, account.p4_user) == (before[0], before[2])
    assert account.email in (before[1], "a@b.example")
    number = User.objects.count()
    made = {**sent, "username": "erin", name.split(".")[1]: nasty}
    pages.post("/people/new/", {**made, **usual})
    assert User.objects.count() == number


ACTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "/api/v1/webhooks": {
        "url": (
            *(
                "file:///etc/passwd",
                "https://u:p@h/",
                "https://h/#x",
                "https://h/\nX: y",
            ),
            *("http://169.254.169.254/", "gopher://h/", "https://h\\@x/", "//h"),
        ),
    },
    "/api/v1/workspaces": {"name": ("../a", "a b", "A", "a\n", "-a", "a_b")},
    "/api/v1/pools": {"windows": (["mon 8-25"], ["* * * * *"], ["\0"])},
}


@pytest.mark.parametrize(
    ("address", "field", "nasty"),
    [
        (address, field, nasty)
        for address, fields in ACTIONS.items()
        for field, nasties in fields.items()
        for nasty in nasties
    ],
)
def test_the_api_refuses(
    address: str, field: str, nasty: Any, api: APIClient, template: Template
) -> None:
    sent = {"template": template.pk, "events": ["workspace.ready"], "size": 1}
    answer = api.post(address, {**sent, field: nasty}, format="json")
    assert answer.status_code == 400, answer.json()


@pytest.mark.parametrize(
    "cron", ["* * * *", "@reboot", "61 * * * *", "a\n* * * *", "\0"]
)
def test_the_api_refuses_a_schedule(
    cron: str, api: APIClient, template: Template
) -> None:
    address = f"/api/v1/templates/{template.pk}/refresh"
    answer = api.post(address, {"mode": "cron", "cron": cron}, format="json")
    assert answer.status_code == 400, answer.json()
