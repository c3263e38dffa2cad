"""The lab as a drift check sees it: ours, and what is as like to ours as it can be."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.drift.actions import finding_resolve
from provisioner.drift.models import FarSide, Finding
from provisioner.drift.sweeps.checks import run_drift_check
from provisioner.engine.models import Operation, Step
from provisioner.gateways import registry
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import Volume, VolumeSpec
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from tests.support.factories import UserFactory
from tests.support.jobs import run_jobs_once, settle
from tests.support.lab import DEPOT, Lab, Published
from tests.support.requests import workspace_create

K, A = Finding.Kind, Finding.Action
FOREIGN = "foreign_volume"
FOREIGN_CLIENT = "cy-somebody-wabcdef"
A_DAY = dt.timedelta(days=1)
NOBODYS_TAG = "cloneyard:v1:workspace=00000000-0000-4000-8000-000000000000"


@pytest.fixture
def owner(jobs_emptied: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


@pytest.fixture
def ontap(lab_site: Site) -> OntapGateway:
    return registry.ontap(lab_site)


@pytest.fixture
def perforce(lab_site: Site) -> Any:
    return registry.perforce(lab_site.perforce_server)


@pytest.fixture
def p4(lab: Lab) -> Iterator[Any]:
    connection = lab.as_admin()
    yield connection
    connection.disconnect()


@pytest.fixture
def emptied_lab(
    lab_site: Site,
    ontap: OntapGateway,
    p4: Any,
    published: Published,
    request: pytest.FixtureRequest,
) -> None:
    """Other tests leave volumes and clients, whose rows are gone by now.

    What was published for many tests stays for those that begin with a workspace of
    it: they leave it as it is.
    """
    if "lab_workspace" not in request.fixturenames:
        published.forget()
    kept = published.template
    kept_volume, kept_client = (
        (kept.volume_name, kept.client_name) if kept is not None else ("", "")
    )
    volumes = sorted(ontap.list_volumes(), key=depth(ontap), reverse=True)
    for volume in volumes:
        is_ours = volume.name.startswith(("cy_", "foreign_"))
        if is_ours and volume.name != kept_volume:
            ontap.unmount_volume(volume.uuid)
            ontap.delete_volume(volume.uuid, force=True)
    for client in p4.run("clients", "-a", "-e", "cy-*"):
        name = client["client"]
        if name != kept_client:
            bound_to = p4.fetch_client(name).get("ServerID")
            at = (f"--serverid={bound_to}",) if bound_to else ()
            p4.run("client", "-d", "-f", "-Fd", *at, name)


def depth(ontap: OntapGateway) -> Callable[[Volume], int]:
    """Return how far a volume is from one that is no clone."""
    by_name = {volume.name: volume for volume in ontap.list_volumes()}

    def of(volume: Volume) -> int:
        # That of a clone whose parent was moved is hidden.
        parent = volume.clone_parent and by_name.get(volume.clone_parent.volume_name)
        return 1 + of(parent) if parent else 0

    return of


@pytest.fixture
def foreign(
    emptied_lab: None, lab_site: Site, ontap: OntapGateway, perforce: Any
) -> Iterator[None]:
    """Objects of others, as like to ours as they can be; untouched at the end."""
    spec = VolumeSpec(
        name=FOREIGN,
        aggregate=lab_site.aggregate,
        size_bytes=20 * 2**20,
        comment="cloneyard:v1: of the finance department",
        export_policy="default",
        uid=20000,
        gid=20000,
    )
    volume = ontap.create_volume(spec)
    ontap.create_snapshot(volume.uuid, name="c1.b1", comment="")
    perforce.clients.save(client_named(FOREIGN_CLIENT, description="Mine. Hands off."))
    before = everything_foreign(ontap, perforce)
    yield
    assert everything_foreign(ontap, perforce) == before
    listed = [*Finding.objects.values_list("subject", "sentence", "details")]
    assert FOREIGN not in repr(listed)
    assert FOREIGN_CLIENT not in repr(listed)


def everything_foreign(ontap: OntapGateway, perforce: Any) -> list[Any]:
    volumes = [v for v in ontap.list_volumes() if v.name == FOREIGN]
    return [
        *((v.uuid, v.comment, v.junction_path, v.state) for v in volumes),
        *(ontap.list_snapshots(v.uuid) for v in volumes),
        *perforce.clients.find_all(name_filter=FOREIGN_CLIENT),
    ]


def client_named(name: str, *, description: str) -> ClientSpec:
    return ClientSpec(
        name=name,
        owner="carol",
        root="/somewhere",
        description=description,
        view=(f"//depot/{DEPOT}/... //{name}/...",),
    )


@pytest.fixture
def lab_workspace(owner: User, published_template: Template) -> Workspace:
    workspace = settle(workspace_create(by=owner, template=published_template))
    assert workspace.state == Workspace.State.READY, workspace.status_message
    long_ago()
    return workspace


def long_ago() -> None:
    """Let everything that happened have happened yesterday."""
    yesterday = timezone.now() - A_DAY
    Operation.objects.exclude(ended_at=None).update(ended_at=yesterday)
    Step.objects.exclude(ended_at=None).update(ended_at=yesterday)


def check_drift(site: Site) -> list[Finding]:
    """Look at both sides; return what is open, by kind."""
    for system in FarSide:
        run = run_drift_check(site, system=system)
        assert not run.status_message
    return list(Finding.objects.filter(resolved_at=None).order_by("kind", "pk"))


def only(findings: list[Finding], kind: Finding.Kind) -> Finding:
    assert [finding.kind for finding in findings] == [kind], [
        finding.sentence for finding in findings
    ]
    return findings[0]


def some_time_later() -> None:
    Finding.objects.update(first_seen_at=F("first_seen_at") - A_DAY)


def resolve(finding: Finding, by: User) -> Finding:
    """Click, and let the worker do it."""
    finding_resolve(by=by, finding=finding)
    run_jobs_once()
    finding.refresh_from_db()
    return finding


def retired(workspace: Workspace) -> Workspace:
    """Let it have been retired long ago, everything gone but what the test leaves."""
    operation = Operation.objects.create(
        kind=WorkspaceOperation.RETIRE,
        subject=workspace.subject,
        requested_by=workspace.owner,
        state=Operation.State.SUCCEEDED,
        ended_at=timezone.now() - A_DAY,
    )
    Workspace.objects.filter(pk=workspace.pk).update(
        state=Workspace.State.RETIRED, retired_at=operation.ended_at, volume_uuid=""
    )
    workspace.refresh_from_db()
    return workspace


def leftover_of(workspace: Workspace, ontap: OntapGateway, perforce: Any) -> str:
    """Retire a workspace and leave its clone, unmounted; return the clone's name."""
    perforce.clients.delete(workspace.client_name)
    ontap.unmount_volume(workspace.volume_uuid)
    retired(workspace)
    return workspace.volume_name


def finding_asked(finding: Finding) -> None:
    finding_resolve(by=UserFactory.create(is_staff=True), finding=finding)


def made_long_ago(workspace: Workspace) -> None:
    Workspace.objects.filter(pk=workspace.pk).update(
        ready_at=timezone.now() - A_DAY, created_at=timezone.now() - A_DAY
    )
