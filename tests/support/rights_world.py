"""One person of every role, what they have, and the addresses about it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from http.cookies import SimpleCookie
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from provisioner.accounts.models import Team, User
from provisioner.accounts.permissions import Role
from provisioner.accounts.tokens import token_create
from provisioner.bisect.actions import bisection_start
from provisioner.catalog.actions.templates import template_build
from provisioner.copies.models import WorkspaceCopy
from provisioner.drills.models import Drill
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.leases.models import LeasePolicy
from provisioner.notify.models import Webhook
from provisioner.notify.webhooks import write_test
from provisioner.pools.models import Pool
from provisioner.routing.actions import routing_rule_add
from provisioner.routing.models import RoutingRule
from provisioner.sandboxes.models import P4dVersion, SandboxPolicy
from provisioner.server_log.models import LogUpload
from provisioner.sites.models import Site
from provisioner.workspace_snapshots.models import (
    SnapshotPolicy,
    WorkspaceSnapshot,
)
from provisioner.workspaces.actions.sharing import workspace_share
from provisioner.workspaces.models import Rescue, Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.directory_syncs import make_directory_sync
from tests.support.factories import (
    CopyRuleFactory,
    MirrorFactory,
    MomentFactory,
    ProcessFactory,
    RunLogFactory,
    SandboxFactory,
    SnapshotFactory,
    TemplateFactory,
    UserFactory,
    VerificationFactory,
)
from tests.support.findings import finding_about
from tests.support.logs import a_sync_that_waited
from tests.support.maintenance import make_maintenance
from tests.support.module_rows import Write
from tests.support.requests import workspace_create

ROLES = {
    "alice": Role.OWNER,
    "bob": Role.TEAM_MATE,
    "dave": Role.READER,
    "erin": Role.CLONER,
    "admin": Role.ADMINISTRATOR,
    "ci": Role.MACHINE,
    "carol": Role.STRANGER,
    "nobody": Role.NOBODY,
}


People = dict[str, User | None]


@dataclass(frozen=True)
class World:
    """People, a workspace, and what stands in addresses: by the name's beginning."""

    people: People
    workspace: Workspace
    numbers: dict[str, dict[str, Any]]
    cookies: dict[str, SimpleCookie]
    tokens: dict[str, str]


@pytest.fixture(scope="module")
def written(written_once: Write[bytes]) -> bytes:
    """The world as it is copied to each test."""
    return written_once(lambda: pickle.dumps(make_world()))


def make_world() -> World:
    people = make_people()
    workspace = make_workspace(people)
    cookies = {name: make_cookies(user) for name, user in people.items()}
    tokens = {name: token_create(by=user)[1] for name, user in people.items() if user}
    numbers = make_numbers(people, workspace)
    return World(people, workspace, numbers, cookies, tokens)


def make_cookies(user: User | None) -> SimpleCookie:
    """Return what the browser keeps of whoever has signed in."""
    browser = Client()
    if user is not None:
        browser.force_login(user)
    return browser.cookies


@pytest.fixture
def world(db: None, written: bytes) -> World:
    copy: World = pickle.loads(written)
    return copy


@pytest.fixture
def people(world: World) -> People:
    return world.people


@pytest.fixture
def shared_workspace(world: World) -> Workspace:
    """One of alice's, ready; she shares it with dave, and with erin for cloning."""
    return world.workspace


def make_people() -> People:
    team = Team.objects.create(name="Rendering")
    return {
        "alice": UserFactory.create(username="alice", team=team),
        "bob": UserFactory.create(username="bob", team=team),
        "dave": UserFactory.create(username="dave"),
        "erin": UserFactory.create(username="erin"),
        "admin": UserFactory.create(username="admin", is_staff=True, is_superuser=True),
        "ci": UserFactory.create(username="ci", is_service=True),
        "carol": UserFactory.create(username="carol"),
        "nobody": None,
    }


def make_workspace(people: People) -> Workspace:
    alice = people["alice"]
    assert alice is not None
    snapshot = SnapshotFactory.create(
        template=TemplateFactory.create(name="main", owner=alice)
    )
    workspace = workspace_create(by=alice, template=snapshot.template)
    workspace_share(by=alice, workspace=workspace, person="dave")
    workspace_share(by=alice, workspace=workspace, person="erin", may_clone=True)
    operation = workspace.operations.get()
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    engine_states.skip_waiting_steps(operation)
    set_workspace_state(workspace, Workspace.State.READY)
    return workspace


def make_numbers(people: People, workspace: Workspace) -> dict[str, dict[str, Any]]:
    admin, snapshot, template = people["admin"], workspace.snapshot, workspace.template
    assert admin is not None
    build = template_build(by=admin, template=template)
    policy = LeasePolicy.objects.create(purpose="development", warn_seconds=[])
    webhook = Webhook.objects.create(
        owner=workspace.owner, url="https://hooks.example/", events=["template.built"]
    )
    delivery = write_test(webhook, at="")
    pool = Pool.objects.create(
        template=template,
        site=template.site,
        purpose="ci",
        owner=workspace.owner,
        size=2,
    )
    share = workspace.shares.get(person__username="dave")
    rescue = Rescue.objects.create(
        workspace=workspace,
        operation=workspace.operations.get(),
        shelves=[{"change": 7, "was": "default", "files": []}],
        has_work=True,
        is_complete=True,
    )
    bisection = bisection_start(by=workspace.owner, template=template, good=1, bad=9)
    mirror = MirrorFactory.create(template=template)
    rule = CopyRuleFactory.create(mirror=mirror)
    copy = WorkspaceCopy.objects.create(workspace=workspace, site=mirror.site)
    taken = WorkspaceSnapshot.objects.create(
        workspace=workspace, name="s", ontap_uuid="u", taken_at=workspace.created_at
    )
    kept = SnapshotPolicy.objects.create(site=template.site)
    return {
        "mirror": {"pk": mirror.pk},
        "copy-rule": {"pk": rule.pk},
        **_sandboxes(people, template.site),
        "process": {"pk": ProcessFactory.create().pk},
        "server-log": {"pk": template.site.perforce_server_id},
        "server-log-upload-detail": {
            "pk": LogUpload.objects.create(
                server=template.site.perforce_server, name="log", size=1, state="read"
            ).pk
        },
        "server-command": {"pk": a_sync_that_waited(template.site.perforce_server).pk},
        "orphan-": {"pk": template.site.perforce_server_id},
        "advice-": {"pk": template.site.perforce_server_id},
        "program-": {"pk": template.site.perforce_server_id},
        "pool": {"pk": pool.pk},
        "person": {"pk": workspace.owner_id},
        "team-": {"pk": workspace.owner.team_id},
        "workspace-create": {"template_pk": template.pk},
        "bisection-create": {"template_pk": template.pk},
        "template": {"pk": template.pk},
        "snapshot": {"pk": snapshot.pk},
        "snapshot-policy": {"pk": kept.pk},
        "workspace": {"pk": workspace.pk},
        "workspace-snapshot": {"pk": workspace.pk, "snapshot_pk": taken.pk},
        "workspace-copy": {"pk": copy.pk},
        "workspace-copy-now": {"pk": workspace.pk, "copy_pk": copy.pk},
        "workspace-copy-restore": {"pk": workspace.pk, "copy_pk": copy.pk},
        "workspace-rescue": {
            "pk": workspace.pk,
            "rescue_pk": rescue.pk,
            "rescue": rescue.pk,
        },
        "workspace-share-names": {"pk": workspace.pk},
        "workspace-share-": {"workspace_pk": workspace.pk, "pk": share.pk},
        "workspace-unshare": {"pk": workspace.pk, "share_pk": share.pk},
        "lease-policy": {"pk": policy.pk},
        "perforce-server": {"pk": template.site.perforce_server_id},
        "routing-rule": {"pk": make_routing_rule(admin, template.site).pk},
        "site": {"pk": template.site_id},
        "split-policy": {"pk": template.site_id},
        "ceiling": {"pk": template.site_id, "purpose": "builds"},
        "volume-policy-template": {"pk": template.pk},
        "volume-policy": {"pk": template.site_id},
        "dedupe-plan": {"pk": template.site_id},
        "probe-plan": {"pk": template.site.perforce_server_id},
        "moment": {"pk": MomentFactory.create().pk},
        "mount": {"site": template.site.name, "directory": workspace.path.name},
        "operation-log": {"pk": build.pk},
        "operation-step": {"pk": build.pk, "step": "build"},
        "operation": {"pk": workspace.operations.get().pk},
        "help-page": {"name": "glossary"},
        "maintenance": {"pk": make_maintenance().pk},
        "directory-sync": {"pk": make_directory_sync().pk},
        "password-new": {"uidb64": "MQ", "token": "x"},
        "event": {"pk": workspace.events.latest("pk").pk},
        "finding": {"pk": finding_about(workspace).pk},
        "token": {"prefix": "0123456789"},
        "my-session-end": {"name": "0123456789abcdef"},
        "person-session-end": {
            "pk": workspace.owner_id,
            "name": "0123456789abcdef",
        },
        "my": {"pk": 1},
        "bisection": {"pk": bisection.pk},
        "notification": {"topic": "templates"},
        "webhook": {"pk": webhook.pk, "delivery_pk": delivery.pk},
        "webhook-delivery": {"webhook_pk": webhook.pk, "pk": delivery.pk},
    }


def _sandboxes(people: People, site: Site) -> dict[str, dict[str, Any]]:
    """Return the numbers of a sandbox of alice's, and of what it needs."""
    sandbox = SandboxFactory.create(owner=people["alice"], site=site)
    alice = people["alice"]
    assert alice is not None
    assert alice.team is not None
    policy = SandboxPolicy.objects.create(team=alice.team)
    version = P4dVersion.objects.create(release="2023.1", path="/opt/p4d")
    return {
        "sandbox": {"pk": sandbox.pk},
        "checkpoint": {"pk": sandbox.perforce_server_id},
        "drill": {"pk": sandbox.perforce_server_id},
        "drill-detail": {
            "pk": Drill.objects.create(sandbox=sandbox, oldest_hours=24).pk
        },
        "verification-plan": {"pk": sandbox.perforce_server_id},
        "verification-make": {"pk": sandbox.perforce_server_id},
        "verification": {"pk": VerificationFactory.create(sandbox=sandbox).pk},
        "qualification": {"pk": RunLogFactory.create(run__sandbox=sandbox).run_id},
        "sandbox-host": {"pk": sandbox.host_id},
        "sandbox-policy": {"pk": policy.pk},
        "server-volumes": {"pk": sandbox.perforce_server_id},
        "p4d-version": {"pk": version.pk},
    }


def make_routing_rule(admin: User, site: Site) -> RoutingRule:
    return routing_rule_add(by=admin, purpose="ci", server=site.perforce_server)


def patterns(resolver: URLResolver) -> Iterator[URLPattern]:
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            yield from patterns(entry)
        else:
            yield entry


def resolver_at(prefix: str) -> URLResolver:
    """Return what is included at a prefix; "" are the pages."""
    entries = get_resolver().url_patterns
    return next(e for e in entries if str(e.pattern) == prefix)  # type: ignore[return-value]  # an include


def address_of(name: str, *, prefix: str, numbers: dict[str, dict[str, Any]]) -> str:
    """Return an address by its name; the longest fitting entry has its numbers."""
    possible: Any = resolver_at(prefix).reverse_dict[name][0]
    _, parameters = possible[0]
    fitting = [start for start in numbers if name.startswith(start)]
    known = numbers[max(fitting, key=len)] if fitting else {}
    wanted = {key: known[key] for key in parameters}
    return reverse("api:" * (prefix == "api/") + name, kwargs=wanted)
