"""The company in the lab: what its rows say is there, and can be worked with."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.demo import seed
from provisioner.demo.company.opening import NotEmpty, ensure_company, point_abroad
from provisioner.demo.company.studio import CompanySize
from provisioner.demo.processes import Child, manage
from provisioner.drift.models import FarSide, Finding
from provisioner.drift.sweeps.checks import run_drift_check
from provisioner.engine.models import Operation
from provisioner.lib import clocks
from provisioner.limits.sweeps import measure
from provisioner.mirrors.actions import mirror_retry, mirror_transfer
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.queries import next_to_transfer
from provisioner.mirrors.sweeps import check_all
from provisioner.sites.models import CapacityDay, Site
from provisioner.workspace_requests.actions import workspace_create
from provisioner.workspace_requests.requests import WorkspaceRequest
from provisioner.workspaces.actions.retiring import workspace_restore, workspace_retire
from provisioner.workspaces.models import Workspace
from tests.support.jobs import run_jobs_once

SMALL = CompanySize(
    probe_days=2,
    people=40,
    templates=24,
    workspaces=90,
    build_share=0.03,
    deliveries=10,
)
WITHIN_SECONDS = 120


@pytest.fixture
def in_lab(transactional_db: None, settings: Any) -> Iterator[list[str]]:
    """A company whose lab runs; the arguments that this was started with."""
    root = Path(tempfile.mkdtemp(prefix="cloneyard-company-", dir="/var/tmp"))
    root.chmod(0o755)
    settings.VAR_DIR, settings.LOG_DIR = root, root / "logs"
    seed.ensure_people()
    arguments = ensure_company(is_wanted=True, say=lambda text: None, size=SMALL)
    ports = ("--ontap-port=0", "--peer-port=0", "--perforce-port=0")
    command = manage("lab", "--root", str(root / "lab"), *ports, *arguments)
    child = Child("lab", command, log_dir=root, reads_output=True)
    try:
        said = child.read_json_line(timeout_seconds=WITHIN_SECONDS)
        secrets = {
            ("ONTAP_PASSWORD", seed.SITE_NAME): said["ontap"]["password"],
            ("ONTAP_PASSWORD", "montreal"): said["peer"]["password"],
        }
        p4_password = said["perforce"]["password"]
        settings.SITE_SECRET = lambda name, *, key: secrets.get(
            (name, key), p4_password
        )
        seed.ensure_site(lab=said)
        point_abroad(said)
        yield arguments
    finally:
        child.stop()
        shutil.rmtree(root)


def open_findings() -> set[tuple[str, str]]:
    found = Finding.objects.filter(resolved_at=None)
    return set(found.values_list("kind", "subject"))


@pytest.mark.integration
def test_far_sides_are_as_the_company_says_and_people_can_work_there(
    in_lab: list[str],
) -> None:
    far_sides_are_as_the_company_says()
    mirrors_are_as_they_say_and_can_be_filled()
    people_can_work_with_what_is_there()


def far_sides_are_as_the_company_says() -> None:
    told = open_findings()
    assert len(told) == 11
    used = {day.site_id: day.used_bytes for day in CapacityDay.objects.order_by("day")}
    for site in Site.objects.all():
        for side in FarSide:
            assert run_drift_check(site, system=side).status_message == ""
        said = used[site.pk]
        assert said is not None
        assert abs(measure(site).aggregate_used_bytes / said - 1) < 0.02
    assert open_findings() == told


def mirrors_are_as_they_say_and_can_be_filled() -> None:
    check_all(now=clocks.database_now())
    admin = User.objects.get(username="admin")
    _, behind, failed = Mirror.objects.order_by("pk")
    assert set(Mirror.objects.values_list("trouble", flat=True)) == {""}
    wanted = next_to_transfer(behind)
    assert wanted is not None
    asked = [
        mirror_transfer(by=admin, mirror=behind, snapshot=wanted),
        mirror_retry(by=admin, mirror=failed),
    ]
    run_jobs_once()
    for operation in asked:
        operation.refresh_from_db()
        assert operation.state == Operation.State.SUCCEEDED, operation.status_message


def people_can_work_with_what_is_there() -> None:
    alice = User.objects.get(username="alice")
    template = Template.objects.get(name="aurora-editor")
    made = workspace_create(WorkspaceRequest(by=alice, template=template))
    ready = Workspace.objects.filter(owner=alice, state=Workspace.State.READY)
    kept = ready.order_by("created_at").first()
    trashed = Workspace.objects.filter(
        owner=alice, state=Workspace.State.TRASHED, site__name=seed.SITE_NAME
    ).first()
    assert kept is not None
    assert trashed is not None
    admin, matchmaker = (
        User.objects.get(username="admin"),
        Template.objects.get(name="matchmaker"),
    )
    asked = [
        made.operations.get(),
        workspace_retire(by=alice, workspace=kept),
        workspace_restore(by=alice, workspace=trashed),
        template_build(by=admin, template=matchmaker),
    ]
    run_jobs_once()
    for operation in asked:
        operation.refresh_from_db()
        assert operation.state == Operation.State.SUCCEEDED, operation.status_message


def test_a_demo_that_is_there_is_not_filled(db: None, settings: Any) -> None:
    with tempfile.TemporaryDirectory() as root:
        settings.VAR_DIR = Path(root)
        (Path(root) / "lab" / "perforce").mkdir(parents=True)
        (Path(root) / "lab" / "perforce" / "db.sqlite3").touch()
        with pytest.raises(NotEmpty):
            ensure_company(is_wanted=True, say=lambda text: None)
        assert ensure_company(is_wanted=False, say=lambda text: None) == []
