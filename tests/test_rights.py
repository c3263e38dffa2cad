"""Every address, method and role against the table of permissions.

An address or a method that is not in the tables here fails the test: whoever adds one
has to say who may use it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.http import HttpResponse
from django.test import Client
from django.urls import get_resolver, reverse

from provisioner.accounts.models import User
from provisioner.accounts.permissions import PERMISSIONS, Role, Verb, may, roles_towards
from provisioner.engine.queries import operations_visible_to
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.permissions import (
    can_change_workspace,
    can_clone_workspace,
)
from provisioner.workspaces.queries import workspaces_visible_to
from tests.support.factories import UserFactory
from tests.support.module_rows import written_once
from tests.support.requests import workspace_create
from tests.support.rights_world import (
    ROLES,
    People,
    World,
    address_of,
    patterns,
    people,
    resolver_at,
    shared_workspace,
    world,
    written,
)
from tests.support.undoing import undone

__all__ = ["people", "shared_workspace", "world", "written", "written_once"]

SEE, CHANGE, VISIT = Verb.SEE_WORKSPACE, Verb.CHANGE_WORKSPACE, Verb.VISIT
CLONE = Verb.CLONE_WORKSPACE
ADMINISTER, HOOK = Verb.ADMINISTER, Verb.CHANGE_WEBHOOK
TEMPLATE = Verb.CHANGE_TEMPLATE
SEE_BISECTION = Verb.SEE_BISECTION
SANDBOX = Verb.CHANGE_SANDBOX

# What no code asks of the table: middleware and queries answer it.
KNOCK = "ask whether it lives, sign in, read the schema"
GET = "get a workspace, and tokens to do so"
RIGHTS: dict[str, frozenset[Role]] = {
    **{str(verb): roles for verb, roles in PERMISSIONS.items()},
    KNOCK: frozenset(Role),
    GET: PERMISSIONS[VISIT],
}

# What has nothing to do with one workspace, and who is nobody else to it.
GENERAL = (KNOCK, VISIT, ADMINISTER)
TOWARDS_A_WORKSPACE = (Role.TEAM_MATE, Role.READER, Role.CLONER)

# That there is something to do is no secret: who may not is told so.
SEEN_BY_ALL = (ADMINISTER, TEMPLATE)

# Pages that change something only when posted to are asked for in both ways.
PAGES: dict[str, dict[str, str]] = {
    "healthz": {"get": KNOCK},
    "readyz": {"get": KNOCK},
    "metrics": {"get": ADMINISTER},
    "single-sign-on": {"get": KNOCK},
    "single-sign-on-callback": {"get": KNOCK},
    "command-line": {"get": KNOCK},
    "login": {"get": KNOCK, "post": KNOCK},
    "logout": {"post": VISIT},
    "theme": {"post": KNOCK},
    "password-forgotten": {"get": KNOCK, "post": KNOCK},
    "password-new": {"get": KNOCK, "post": KNOCK},
    "help": {"get": VISIT},
    "maintenance-list": {"get": ADMINISTER, "post": ADMINISTER},
    "maintenance-withdraw": {"post": ADMINISTER},
    "directory-sync": {"get": ADMINISTER},
    "directory-sync-start": {"post": ADMINISTER},
    "directory-sync-approve": {"post": ADMINISTER},
    "help-page": {"get": VISIT},
    "my-password": {"get": VISIT, "post": VISIT},
    "my-account": {"get": VISIT, "post": VISIT},
    "workspace-list": {"get": VISIT, "post": VISIT},
    "setup": {"get": VISIT},
    "workspace-team-list": {"get": VISIT},
    "workspace-trash": {"get": VISIT, "post": VISIT},
    "workspace-retired-list": {"get": VISIT},
    "workspace-create": {"get": GET, "post": GET},
    "workspace-detail": {"get": SEE},
    "workspace-retire": {"get": CHANGE, "post": CHANGE},
    "workspace-restore": {"post": CHANGE},
    "workspace-purge": {"get": CHANGE, "post": CHANGE},
    "workspace-retry": {"post": CHANGE},
    "workspace-transfer": {"get": CHANGE, "post": CHANGE},
    "workspace-check": {"get": CHANGE, "post": CHANGE},
    "workspace-transfer-abort": {"post": CHANGE},
    "workspace-split": {"get": CHANGE, "post": CHANGE},
    "workspace-clone": {"get": CLONE, "post": CLONE},
    "workspace-split-stop": {"post": CHANGE},
    "workspace-extend": {"get": CHANGE, "post": CHANGE},
    "workspace-keep": {"get": CHANGE, "post": CHANGE},
    "workspace-release": {"post": CHANGE},
    "workspace-open": {"post": CHANGE},
    "workspace-share": {"get": CHANGE, "post": CHANGE},
    "workspace-share-names": {"get": CHANGE},
    "workspace-rescue": {"get": CHANGE},
    "workspace-rescue-download": {"get": CHANGE},
    "workspace-unshare": {"post": CHANGE},
    "lease-policy-list": {"get": ADMINISTER},
    "lease-policy-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "lease-policy-remove": {"get": ADMINISTER, "post": ADMINISTER},
    "filling-volume-list": {"get": ADMINISTER},
    "held-snapshot-list": {"get": ADMINISTER},
    "held-snapshot-free": {"get": ADMINISTER, "post": ADMINISTER},
    "data-reduction-list": {"get": ADMINISTER},
    "dedupe-run-list": {"get": ADMINISTER},
    "dedupe-plan-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "split-policy-list": {"get": ADMINISTER},
    "snapshot-policy-list": {"get": ADMINISTER, "post": ADMINISTER},
    "snapshot-policy-delete": {"post": ADMINISTER},
    "workspace-snapshot-list": {"get": SEE},
    "workspace-snapshot": {"get": CHANGE, "post": CHANGE},
    "workspace-snapshot-compare": {"post": CHANGE},
    "workspace-snapshot-restore": {"get": CHANGE, "post": CHANGE},
    "workspace-snapshot-retry": {"post": CHANGE},
    "split-policy-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "template-move": {"get": ADMINISTER, "post": ADMINISTER},
    "template-move-pause": {"post": ADMINISTER},
    "template-move-resume": {"post": ADMINISTER},
    "template-move-stop": {"post": ADMINISTER},
    "ceiling-list": {"get": ADMINISTER},
    "ceiling-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "volume-policy-list": {"get": ADMINISTER},
    "volume-policy-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "volume-policy-template": {"get": ADMINISTER, "post": ADMINISTER},
    "abandoned-list": {"get": ADMINISTER, "post": ADMINISTER},
    "abandoned-progress": {"get": ADMINISTER},
    "template-list": {"get": VISIT, "post": VISIT},
    "template-create": {"get": ADMINISTER, "post": ADMINISTER},
    "template-detail": {"get": VISIT},
    "template-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "template-build": {"get": ADMINISTER, "post": ADMINISTER},
    "template-build-stop": {"get": ADMINISTER, "post": ADMINISTER},
    "template-refresh": {"get": ADMINISTER, "post": ADMINISTER},
    "template-rename": {"get": TEMPLATE, "post": TEMPLATE},
    "template-owner": {"get": TEMPLATE, "post": TEMPLATE},
    "template-archive": {"get": TEMPLATE, "post": TEMPLATE},
    "template-unarchive": {"post": TEMPLATE},
    "template-delete": {"get": ADMINISTER, "post": ADMINISTER},
    "template-roll-back": {"post": TEMPLATE},
    "snapshot-hold": {"get": TEMPLATE, "post": TEMPLATE},
    "snapshot-release": {"post": TEMPLATE},
    "snapshot-withdraw": {"get": TEMPLATE, "post": TEMPLATE},
    "snapshot-describe": {"get": TEMPLATE, "post": TEMPLATE},
    "template-subscribe": {"post": VISIT},
    "template-pin": {"post": VISIT},
    "template-check": {"post": ADMINISTER},
    "bisection-list": {"get": VISIT, "post": VISIT},
    "bisection-create": {"get": GET, "post": GET},
    "bisection-detail": {"get": SEE_BISECTION},
    "bisection-verdict": {"post": CHANGE},
    "bisection-stop": {"post": CHANGE},
    "my-list-columns": {"post": VISIT},
    "my-view-save": {"post": VISIT},
    "my-view-delete": {"post": VISIT},
    "my-session-list": {"get": VISIT, "post": VISIT},
    "my-session-end": {"post": VISIT},
    "my-sessions-end-others": {"post": VISIT},
    "token-list": {"get": VISIT, "post": VISIT},
    "token-everybody-list": {"get": ADMINISTER, "post": ADMINISTER},
    "token-revoke": {"post": VISIT},
    "my-notifications": {"get": VISIT, "post": VISIT},
    "webhook-list": {"get": VISIT, "post": VISIT},
    "webhook-create": {"get": VISIT, "post": VISIT},
    "webhook-detail": {"get": HOOK},
    "webhook-edit": {"get": HOOK, "post": HOOK},
    "webhook-switch": {"post": HOOK},
    "webhook-test": {"post": HOOK},
    "webhook-secret": {"post": HOOK},
    "webhook-delete": {"get": HOOK, "post": HOOK},
    "webhook-again": {"post": HOOK},
    "pool-list": {"get": ADMINISTER, "post": ADMINISTER},
    "pool-create": {"get": ADMINISTER, "post": ADMINISTER},
    "pool-detail": {"get": ADMINISTER},
    "pool-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "pool-delete": {"get": ADMINISTER, "post": ADMINISTER},
    "mirror-list": {"get": VISIT},
    "mirror-create": {"get": ADMINISTER, "post": ADMINISTER},
    "mirror-detail": {"get": VISIT},
    "mirror-progress": {"get": VISIT},
    "mirror-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "mirror-transfer": {"get": TEMPLATE, "post": TEMPLATE},
    "mirror-retry": {"post": ADMINISTER},
    "mirror-delete": {"get": ADMINISTER, "post": ADMINISTER},
    "mirror-copies": {"get": ADMINISTER, "post": ADMINISTER},
    "mirror-copies-off": {"post": ADMINISTER},
    "workspace-copy-now": {"post": CHANGE},
    "workspace-copy-restore": {"get": CHANGE, "post": CHANGE},
    "server-load": {"get": ADMINISTER},
    "server-load-waits": {"get": ADMINISTER},
    "server-load-locks": {"get": ADMINISTER},
    "server-load-lapses": {"get": ADMINISTER},
    "server-load-polling": {"get": ADMINISTER},
    "server-table-use-list": {"get": ADMINISTER},
    "server-log-list": {"get": ADMINISTER},
    "server-log-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "server-log-upload": {"get": ADMINISTER, "post": ADMINISTER},
    "server-message-list": {"get": ADMINISTER},
    "server-command-list": {"get": ADMINISTER},
    "server-command-detail": {"get": ADMINISTER},
    "process-list": {"get": ADMINISTER},
    "probe-list": {"get": ADMINISTER},
    "probe-rounds": {"get": ADMINISTER},
    "comparison": {"get": ADMINISTER, "post": ADMINISTER},
    "moment-list": {"get": ADMINISTER, "post": ADMINISTER},
    "moment-delete": {"post": ADMINISTER},
    "probe-plan-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "checkpoint-list": {"get": ADMINISTER},
    "checkpoint-plan-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "checkpoint-make": {"post": ADMINISTER},
    "drill-list": {"get": ADMINISTER},
    "drill-plan-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "drill-start": {"post": ADMINISTER},
    "verification-plan-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "verification-make": {"post": ADMINISTER},
    "verification-list": {"get": VISIT},
    "verification-detail": {"get": SANDBOX},
    "sandbox-list": {"get": VISIT},
    "sandbox-create": {"get": VISIT, "post": VISIT},
    "sandbox-detail": {"get": SANDBOX},
    "sandbox-progress": {"get": SANDBOX},
    "sandbox-extend": {"get": SANDBOX, "post": SANDBOX},
    "sandbox-retire": {"get": SANDBOX, "post": SANDBOX},
    "sandbox-start": {"post": SANDBOX},
    "sandbox-retry": {"post": SANDBOX},
    "sandbox-setup": {"get": ADMINISTER},
    "qualification-list": {"get": VISIT},
    "qualification-create": {"get": VISIT, "post": VISIT},
    "qualification-compare": {"get": VISIT},
    "qualification-baseline": {"get": VISIT, "post": VISIT},
    "qualification-detail": {"get": SANDBOX},
    "qualification-progress": {"get": SANDBOX},
    "qualification-report": {"get": SANDBOX},
    "qualification-csv": {"get": SANDBOX},
    "qualification-log": {"get": SANDBOX},
    "qualification-retry": {"post": SANDBOX},
    "server-volumes": {"get": ADMINISTER, "post": ADMINISTER},
    "p4d-version-create": {"get": ADMINISTER, "post": ADMINISTER},
    "p4d-version-delete": {"post": ADMINISTER},
    "sandbox-host-create": {"get": ADMINISTER, "post": ADMINISTER},
    "sandbox-host-delete": {"post": ADMINISTER},
    "sandbox-policy-create": {"get": ADMINISTER, "post": ADMINISTER},
    "sandbox-policy-delete": {"post": ADMINISTER},
    "configuration-list": {"get": ADMINISTER},
    "configuration-read": {"post": ADMINISTER},
    "storage-advice": {"get": ADMINISTER},
    "support-matrix": {"get": ADMINISTER},
    "orphan-list": {"get": ADMINISTER},
    "advice-list": {"get": ADMINISTER},
    "advice-rule": {"get": ADMINISTER, "post": ADMINISTER},
    "program-releases": {"get": ADMINISTER},
    "program-release": {"get": ADMINISTER, "post": ADMINISTER},
    "program-ask": {"post": ADMINISTER},
    "program-list": {"get": ADMINISTER},
    "orphan-rule": {"get": ADMINISTER, "post": ADMINISTER},
    "orphan-end": {"post": ADMINISTER},
    "process-end": {"get": ADMINISTER, "post": ADMINISTER},
    "mirror-promote": {"get": ADMINISTER, "post": ADMINISTER},
    "mirror-reestablish": {"get": ADMINISTER, "post": ADMINISTER},
    "mirror-give-up": {"get": ADMINISTER, "post": ADMINISTER},
    "refresh-list": {"get": ADMINISTER, "post": ADMINISTER},
    "person-list": {"get": ADMINISTER, "post": ADMINISTER},
    "person-detail": {"get": ADMINISTER, "post": ADMINISTER},
    "person-create": {"get": ADMINISTER, "post": ADMINISTER},
    "person-password": {"get": ADMINISTER, "post": ADMINISTER},
    "person-close": {"get": ADMINISTER, "post": ADMINISTER},
    "person-reopen": {"post": ADMINISTER},
    "person-session-end": {"post": ADMINISTER},
    "person-sessions-end": {"post": ADMINISTER},
    "person-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "team-list": {"get": ADMINISTER},
    "team-create": {"get": ADMINISTER, "post": ADMINISTER},
    "team-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "refresh-pause": {"post": ADMINISTER},
    "perforce-server-list": {"get": ADMINISTER, "post": ADMINISTER},
    "perforce-server-create": {"get": ADMINISTER, "post": ADMINISTER},
    "perforce-server-detail": {"get": ADMINISTER},
    "perforce-server-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "perforce-server-test": {"post": ADMINISTER},
    "perforce-server-pause": {"post": ADMINISTER},
    "perforce-server-resume": {"post": ADMINISTER},
    "routing-rule-list": {"get": ADMINISTER, "post": ADMINISTER},
    "routing-rule-move-up": {"post": ADMINISTER},
    "routing-rule-remove": {"post": ADMINISTER},
    "traffic-list": {"get": ADMINISTER},
    "site-list": {"get": ADMINISTER},
    "site-create": {"get": ADMINISTER, "post": ADMINISTER},
    "site-detail": {"get": ADMINISTER},
    "site-edit": {"get": ADMINISTER, "post": ADMINISTER},
    "site-test": {"post": ADMINISTER},
    "site-try-out": {"post": ADMINISTER},
    "overview": {"get": ADMINISTER},
    "savings-list": {"get": ADMINISTER},
    "operation-list": {"get": VISIT},
    "operation-detail": {"get": SEE},
    "operation-log": {"get": VISIT},
    "operation-step-log": {"get": VISIT},
    "operation-step-log-download": {"get": VISIT},
    "operation-step-log-error": {"get": VISIT},
    "palette": {"get": VISIT},
    "admin-workspace-list": {"get": ADMINISTER, "post": ADMINISTER},
    "limit-list": {"get": ADMINISTER},
    "audit-log": {"get": ADMINISTER},
    "drift": {"get": ADMINISTER, "post": ADMINISTER},
    "drift-check": {"post": ADMINISTER},
    "drift-adopt": {"post": ADMINISTER},
    "finding-detail": {"get": ADMINISTER, "post": ADMINISTER},
}
API: dict[str, dict[str, str]] = {
    "token-list": {"get": VISIT, "post": GET},
    "token-perforce": {"post": KNOCK},
    "token-detail": {"delete": GET},
    "template-list": {"get": VISIT, "post": ADMINISTER},
    "template-detail": {"get": VISIT, "patch": TEMPLATE, "delete": ADMINISTER},
    "template-build": {"post": ADMINISTER},
    "template-build-stop": {"post": ADMINISTER},
    "template-refresh": {"post": ADMINISTER},
    "template-checks-check": {"get": VISIT, "post": ADMINISTER},
    "template-checks-preview": {"post": ADMINISTER},
    "template-pin": {"put": VISIT, "delete": VISIT},
    "template-mails-subscription": {"get": VISIT, "put": VISIT, "delete": VISIT},
    "notification-list": {"get": VISIT},
    "notification-detail": {"patch": VISIT},
    "webhook-list": {"get": VISIT, "post": VISIT},
    "webhook-detail": {"get": HOOK, "patch": HOOK, "delete": HOOK},
    "webhook-test": {"post": HOOK},
    "webhook-secret": {"post": HOOK},
    "webhook-delivery-list": {"get": HOOK},
    "webhook-delivery-detail": {"get": HOOK},
    "webhook-delivery-again": {"post": HOOK},
    "snapshot-list": {"get": VISIT},
    "template-roll-back": {"post": TEMPLATE},
    "template-archive": {"post": TEMPLATE},
    "template-unarchive": {"post": TEMPLATE},
    "template-needs": {"get": ADMINISTER},
    "snapshot-detail": {"get": VISIT, "patch": TEMPLATE},
    "snapshot-hold": {"post": TEMPLATE},
    "snapshot-release": {"post": TEMPLATE},
    "snapshot-withdraw": {"post": TEMPLATE},
    "snapshot-pins": {"get": VISIT},
    "workspace-list": {"get": VISIT, "post": GET},
    "workspace-detail": {"get": SEE, "delete": CHANGE},
    "workspace-purge": {"post": CHANGE},
    "workspace-restore": {"post": CHANGE},
    "workspace-retry": {"post": CHANGE},
    "workspace-check": {"post": CHANGE},
    "workspace-transfer-abort": {"post": CHANGE},
    "workspace-transfer-transfer": {"get": SEE, "post": CHANGE},
    "snapshot-policy-list": {"get": ADMINISTER, "post": ADMINISTER},
    "snapshot-policy-detail": {"delete": ADMINISTER},
    "workspace-snapshot-snapshots": {"get": SEE},
    "workspace-snapshot-compare": {"post": CHANGE},
    "workspace-snapshot-restore-snapshot": {"post": CHANGE},
    "workspace-snapshot-retry-snapshot": {"post": CHANGE},
    "workspace-snapshot-take-back": {"post": CHANGE},
    "workspace-cloning-clone": {"post": CLONE},
    "held-snapshot-list": {"get": ADMINISTER},
    "data-reduction-list": {"get": ADMINISTER},
    "dedupe-plan-list": {"get": ADMINISTER},
    "dedupe-plan-detail": {"patch": ADMINISTER},
    "dedupe-run-list": {"get": ADMINISTER},
    "probe-plan-list": {"get": ADMINISTER},
    "moment-list": {"get": ADMINISTER, "post": ADMINISTER},
    "moment-detail": {"delete": ADMINISTER},
    "comparison-list": {"get": ADMINISTER},
    "report-mail-list": {"get": ADMINISTER, "post": ADMINISTER},
    "probe-plan-detail": {"patch": ADMINISTER},
    "probe-time-list": {"get": ADMINISTER},
    "probe-round-list": {"get": ADMINISTER},
    "probe-week-list": {"get": ADMINISTER},
    "space-plan-list": {"get": ADMINISTER, "post": ADMINISTER},
    "ceiling-list": {"get": ADMINISTER, "post": ADMINISTER},
    "volume-policy-list": {"get": ADMINISTER, "post": ADMINISTER},
    "template-move-move": {"get": ADMINISTER, "post": ADMINISTER},
    "template-move-pause-move": {"post": ADMINISTER},
    "template-move-resume-move": {"post": ADMINISTER},
    "template-move-stop-move": {"post": ADMINISTER},
    "workspace-split-split": {"get": CHANGE, "post": CHANGE},
    "workspace-split-stop-split": {"post": CHANGE},
    "workspace-lease-extend": {"post": CHANGE},
    "workspace-lease-heartbeat": {"post": CHANGE},
    "workspace-lease-keep": {"post": CHANGE},
    "workspace-lease-release": {"post": CHANGE},
    "workspace-root-open": {"post": CHANGE},
    "workspace-share-list": {"get": CHANGE, "post": CHANGE},
    "workspace-rescue-list": {"get": CHANGE},
    "workspace-rescue-files": {"get": CHANGE},
    "workspace-rescue-archive": {"get": CHANGE},
    "workspace-share-detail": {"delete": CHANGE},
    "lease-policy-list": {"get": ADMINISTER, "post": ADMINISTER},
    "lease-policy-detail": {"get": ADMINISTER, "delete": ADMINISTER},
    "pool-list": {"get": ADMINISTER, "post": ADMINISTER},
    "pool-detail": {"get": ADMINISTER, "patch": ADMINISTER, "delete": ADMINISTER},
    "mirror-list": {"get": VISIT, "post": ADMINISTER},
    "mirror-detail": {"get": VISIT, "patch": ADMINISTER, "delete": ADMINISTER},
    "mirror-retry": {"post": ADMINISTER},
    "mirror-transfer": {"post": TEMPLATE},
    "mirror-snapshots": {"get": VISIT},
    "copy-rule-list": {"get": VISIT, "post": ADMINISTER},
    "copy-rule-detail": {"delete": ADMINISTER},
    "workspace-recovery-recover": {"post": CHANGE},
    "workspace-copy-list": {"get": VISIT},
    "workspace-copy-detail": {"get": SEE},
    "workspace-copy-transfer": {"post": CHANGE},
    "checkpoint-list": {"get": ADMINISTER, "post": ADMINISTER},
    "checkpoint-plan-list": {"get": ADMINISTER},
    "checkpoint-plan-detail": {"patch": ADMINISTER},
    "drill-detail": {"get": ADMINISTER},
    "drill-list": {"get": ADMINISTER, "post": ADMINISTER},
    "drill-plan-list": {"get": ADMINISTER},
    "drill-plan-detail": {"patch": ADMINISTER},
    "verification-plan-list": {"get": ADMINISTER},
    "verification-plan-detail": {"patch": ADMINISTER},
    "verification-list": {"get": VISIT, "post": ADMINISTER},
    "verification-detail": {"get": SANDBOX},
    "verification-damaged": {"get": SANDBOX},
    "sandbox-list": {"get": VISIT, "post": VISIT},
    "sandbox-detail": {"get": SANDBOX},
    "sandbox-extend": {"post": SANDBOX},
    "sandbox-retire": {"post": SANDBOX},
    "sandbox-start": {"post": SANDBOX},
    "sandbox-retry": {"post": SANDBOX},
    "qualification-run-list": {"get": VISIT, "post": VISIT},
    "qualification-run-detail": {"get": SANDBOX},
    "qualification-run-retry": {"post": SANDBOX},
    "qualification-run-baseline": {"post": VISIT},
    "server-volumes-list": {"get": ADMINISTER, "post": ADMINISTER},
    "p4d-version-list": {"get": ADMINISTER, "post": ADMINISTER},
    "p4d-version-detail": {"delete": ADMINISTER},
    "sandbox-host-list": {"get": ADMINISTER, "post": ADMINISTER},
    "sandbox-host-detail": {"delete": ADMINISTER},
    "sandbox-policy-list": {"get": ADMINISTER, "post": ADMINISTER},
    "sandbox-policy-detail": {"delete": ADMINISTER},
    "configuration-list": {"get": ADMINISTER},
    "configuration-read": {"post": ADMINISTER},
    "storage-advice-list": {"get": ADMINISTER},
    "support-matrix-list": {"get": ADMINISTER},
    "worker-list": {"get": ADMINISTER},
    "server-load-list": {"get": ADMINISTER},
    "server-lock-wait-list": {"get": ADMINISTER},
    "server-lock-list": {"get": ADMINISTER},
    "server-polling-list": {"get": ADMINISTER},
    "server-checkpoint-list": {"get": ADMINISTER},
    "server-table-use-list": {"get": ADMINISTER},
    "server-log-list": {"get": ADMINISTER},
    "server-log-detail": {"patch": ADMINISTER},
    "server-log-upload-list": {"get": ADMINISTER, "post": ADMINISTER},
    "server-log-upload-detail": {"get": ADMINISTER},
    "server-message-list": {"get": ADMINISTER},
    "server-command-list": {"get": ADMINISTER},
    "server-command-detail": {"get": ADMINISTER},
    "orphan-rule-list": {"get": ADMINISTER},
    "perforce-client-list": {"get": ADMINISTER},
    "advice-rule-list": {"get": ADMINISTER},
    "advice-rule-detail": {"patch": ADMINISTER},
    "program-release-list": {"get": ADMINISTER},
    "program-release-detail": {"patch": ADMINISTER},
    "program-release-ask": {"post": ADMINISTER},
    "program-list": {"get": ADMINISTER},
    "orphan-rule-detail": {"patch": ADMINISTER},
    "orphan-rule-end": {"post": ADMINISTER},
    "process-list": {"get": ADMINISTER},
    "process-detail": {"get": ADMINISTER},
    "process-end": {"post": ADMINISTER},
    "mirror-promotion": {"get": ADMINISTER},
    "mirror-promote": {"post": ADMINISTER},
    "mirror-way-back": {"get": ADMINISTER},
    "mirror-reestablish": {"post": ADMINISTER},
    "mirror-give-up": {"post": ADMINISTER},
    "abandoned-list": {"get": ADMINISTER},
    "abandoned-notify": {"post": ADMINISTER},
    "abandoned-retire": {"post": ADMINISTER},
    "bisection-list": {"get": VISIT, "post": GET},
    "bisection-detail": {"get": SEE_BISECTION},
    "bisection-verdict": {"post": CHANGE},
    "bisection-stop": {"post": CHANGE},
    "operation-list": {"get": VISIT},
    "operation-detail": {"get": SEE},
    "operation-log": {"get": VISIT},
    "limit-list": {"get": ADMINISTER},
    "perforce-server-list": {"get": ADMINISTER},
    "perforce-server-pause": {"post": ADMINISTER},
    "perforce-server-resume": {"post": ADMINISTER},
    "routing-rule-list": {"get": ADMINISTER, "post": ADMINISTER},
    "routing-rule-detail": {"delete": ADMINISTER},
    "routing-rule-up": {"post": ADMINISTER},
    "traffic-list": {"get": ADMINISTER},
    "traffic-moved": {"get": ADMINISTER},
    "site-list": {"get": ADMINISTER},
    "mount-detail": {"get": SEE},
    "maintenance-list": {"get": VISIT, "post": ADMINISTER},
    "maintenance-detail": {"delete": ADMINISTER},
    "event-list": {"get": VISIT},
    "event-detail": {"get": SEE},
    "finding-list": {"get": ADMINISTER},
    "finding-detail": {"get": ADMINISTER},
    "finding-resolve": {"post": ADMINISTER},
    "finding-check": {"post": ADMINISTER},
    "finding-adopt": {"post": ADMINISTER},
    "schema": {"get": KNOCK},
    "docs": {"get": VISIT},
}
# What has to be well formed before anybody asks who sends it.
BODIES: dict[str, dict[str, Any]] = {
    "workspace-lease-keep": {"reason": "Because."},
    "workspace-snapshot-compare": {"snapshot": 1},
    "workspace-snapshot-restore-snapshot": {"snapshot": 1},
    "workspace-snapshot-retry-snapshot": {"snapshot": 1},
    "workspace-snapshot-take-back": {"snapshot": 1, "path": "a"},
    "template-refresh": {"mode": "manual"},
    "template-detail": {"title": "Main line"},
    "snapshot-detail": {"label": "Alpha 3"},
    "snapshot-hold": {"reason": "Because."},
    "snapshot-withdraw": {"reason": "Because."},
    "perforce-server-pause": {"reason": "A checkpoint."},
    "abandoned-notify": {"workspaces": [1]},
    "copy-rule-list": {"mirror": 1},
    "sandbox-extend": {"hours": 1},
    "workspace-recovery-recover": {"site": "bangalore"},
    "bisection-verdict": {"change": 1, "verdict": "good"},
    "abandoned-retire": {"workspaces": [1], "preview": True},
    "lease-policy-list": {"purpose": "build", "trash_seconds": 0, "preview": True},
}
FOR_PROGRAMS = {"metrics"}  # they cannot sign in on a page
# A token makes no token; of a build without output there is nothing to download; the
# token and the session in the addresses are nobody's; and here no provider is there to
# sign in at.
WITH_SESSION = {("token-list", "post")}
MAY_BE_EMPTY = {
    "my-session-end",
    "person-session-end",
    "single-sign-on",
    "single-sign-on-callback",
    "operation-step-log-download",
    "token-detail",
    "token-revoke",
    "workspace-transfer-transfer",
}


Ask = Callable[[str], HttpResponse]


# --- the tables have everything


def test_every_page_is_in_the_table() -> None:
    names = {pattern.name for pattern in patterns(resolver_at(""))}
    assert names == set(PAGES)


def test_every_address_of_the_api_is_in_the_table() -> None:
    routes = {
        pattern.name: set(getattr(pattern.callback, "actions", {"get": ""})) - {"head"}
        for pattern in patterns(resolver_at("api/"))
        if pattern.name is not None  # all others: nothing is there
    }
    assert routes == {name: set(methods) for name, methods in API.items()}


def test_there_are_pages_api_and_administration_alone() -> None:
    prefixes = {str(entry.pattern) for entry in get_resolver().url_patterns}
    assert prefixes == {"", "api/", "admin/"}


def test_every_verb_and_every_role_is_in_the_table() -> None:
    assert set(PERMISSIONS) == set(Verb)
    assert set(ROLES.values()) == set(Role)
    assert Role.NOBODY not in frozenset.union(*PERMISSIONS.values())


# --- every address keeps to it


def rows(table: dict[str, dict[str, str]]) -> list[Any]:
    return [
        pytest.param(name, method, verb, id=f"{method} {name}")
        for name, methods in table.items()
        for method, verb in methods.items()
    ]


def in_order(people: People, verb: str) -> Iterator[tuple[str, User | None]]:
    """Yield everybody; what one of them did is undone before the next.

    Who has a role towards the workspace alone is a stranger to all else.
    """
    for name, user in people.items():
        if verb in GENERAL and ROLES[name] in TOWARDS_A_WORKSPACE:
            continue
        with undone():
            yield name, user


def seen_by(name: str) -> str:
    """Return what it takes to see what an address changes."""
    return SEE_BISECTION if name.startswith("bisection") else SEE


def is_allowed(who: str, verb: str) -> bool:
    return ROLES[who] in RIGHTS[verb]


@pytest.mark.parametrize(("name", "method", "verb"), rows(PAGES))
def test_pages_keep_to_the_table(
    name: str,
    method: str,
    verb: str,
    world: World,
) -> None:
    address = address_of(name, prefix="", numbers=world.numbers)
    browser = Client()  # one for all: it loads the middleware
    for who, user in in_order(world.people, verb):
        browser.cookies = world.cookies[who]

        answer = getattr(browser, method)(address)

        seen = (who, answer.status_code, answer.headers.get("Location", ""))
        if is_allowed(who, verb):
            assert answer.status_code in {200, 302, 409, 422, 503} or (
                name in MAY_BE_EMPTY and answer.status_code == 404
            ), seen
            assert name == "logout" or "/login/" not in seen[2], seen
        elif user is None and name in FOR_PROGRAMS:
            assert answer.status_code == 401, seen
        elif user is None:
            assert answer.status_code == 302, seen
            assert "/login/" in seen[2], seen
        elif verb in (CHANGE, CLONE) and is_allowed(who, seen_by(name)):
            assert answer.status_code == 403, seen
        else:
            assert answer.status_code == (403 if verb in SEEN_BY_ALL else 404), seen


@pytest.mark.parametrize(("name", "method", "verb"), rows(API))
def test_the_api_keeps_to_the_table(
    name: str,
    method: str,
    verb: str,
    world: World,
) -> None:
    address = address_of(name, prefix="api/", numbers=world.numbers)
    client = Client()  # one for all: it loads the middleware
    for who, user in in_order(world.people, verb):
        headers = {}
        client.cookies = SimpleCookie()
        if name == "docs" or (name, method) in WITH_SESSION:
            client.cookies = world.cookies[who]
        elif user is not None:
            headers = {"Authorization": f"Bearer {world.tokens[who]}"}

        answer = getattr(client, method)(
            address,
            BODIES.get(name) if method in ("post", "patch") else None,
            content_type="application/json",
            headers=headers,
        )

        seen = (who, answer.status_code, answer.content[:200])
        if is_allowed(who, verb):
            assert answer.status_code in {200, 201, 202, 204, 400, 409} or (
                name in MAY_BE_EMPTY and answer.status_code == 404
            ), seen
        elif user is None:
            assert answer.status_code == (302 if name == "docs" else 401), seen
        elif verb in SEEN_BY_ALL or (
            verb in (CHANGE, CLONE) and is_allowed(who, seen_by(name))
        ):
            assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
        else:
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


def test_rows_kept_by_hand_are_for_administrators(world: World) -> None:
    names = [p.name for p in patterns(resolver_at("admin/")) if p.name]
    lists = [name for name in names if name.endswith("_changelist")]
    assert len(lists) > 5
    browser = Client()
    for name in ("index", *lists):
        for who in world.people:
            browser.cookies = world.cookies[who]
            answer = browser.get(reverse(f"admin:{name}"))
            is_in = answer.status_code == 200
            assert is_in == is_allowed(who, ADMINISTER), (name, who, answer)


# --- the table, its reader and the queries agree


def test_everybody_plays_the_part_they_should(
    people: People, shared_workspace: Workspace
) -> None:
    for who, user in people.items():
        if user is None:
            assert roles_towards(AnonymousUser(), shared_workspace) == {Role.NOBODY}
            continue
        may_see = workspaces_visible_to(user).filter(pk=shared_workspace.pk).exists()
        assert may_see == is_allowed(who, SEE)
        assert can_change_workspace(user, shared_workspace) == is_allowed(who, CHANGE)
        assert can_clone_workspace(user, shared_workspace) == is_allowed(who, CLONE)
        assert may(user, ADMINISTER) == is_allowed(who, ADMINISTER)


def test_everybody_sees_their_own_of_their_team_and_what_is_shared(
    people: People, shared_workspace: Workspace
) -> None:
    workspaces = [shared_workspace]
    for number, user in enumerate(people.values()):
        if user is not None:
            workspaces.append(
                workspace_create(
                    by=user, template=shared_workspace.template, name=f"of-{number}"
                )
            )
    for user in people.values():
        if user is None:
            continue
        mates = {user, *User.objects.filter(team=user.team_id).exclude(team=None)}
        expected = {
            each.pk
            for each in workspaces
            if user.is_administrator
            or each.owner in mates
            or (user in (people["dave"], people["erin"]) and each == shared_workspace)
        }
        listed = workspaces_visible_to(user).values_list("pk", flat=True)
        assert sorted(listed) == sorted(expected)
        operations = operations_visible_to(user).filter(
            subject__workspace__isnull=False
        )
        of = operations.values_list("subject__workspace", flat=True)
        assert sorted(of) == sorted(expected)
        for each in workspaces:
            if can_change_workspace(user, each):
                assert each.pk in expected


def test_who_left_is_nobody(people: People, shared_workspace: Workspace) -> None:
    alice = people["alice"]
    assert alice is not None
    alice.is_active = False
    assert roles_towards(alice, shared_workspace) == {Role.NOBODY}


def test_people_without_a_team_are_not_each_others_mates(
    people: People, shared_workspace: Workspace
) -> None:
    carol, template = people["carol"], shared_workspace.template
    assert carol is not None
    theirs = workspace_create(by=UserFactory.create(), template=template)
    assert theirs not in workspaces_visible_to(carol)


def test_whatever_needs_no_account_is_in_the_table_of_rate_limits() -> None:
    page = (settings.BASE_DIR / "docs" / "security.md").read_text()
    table = page.partition("## Rate limits")[2].partition("\n## ")[0]
    addresses = [row.split("|")[1] for row in table.splitlines() if row.startswith("|")]
    said = {name for cell in addresses for name in re.findall(r"`([\w-]+)`", cell)}
    open_to_all = {
        name for name, verbs in (PAGES | API).items() if KNOCK in verbs.values()
    }
    assert len(open_to_all) > 8
    assert open_to_all - said == set()
