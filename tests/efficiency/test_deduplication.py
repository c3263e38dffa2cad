"""Plans of deduplication on the lab: what runs when, and what it saves."""

from __future__ import annotations

import datetime as dt
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import User
from provisioner.catalog.models import Template, TemplateOperation
from provisioner.efficiency.actions import dedupe_plan_save
from provisioner.efficiency.models import DedupePlan, DedupeRun, ReductionDay
from provisioner.efficiency.sweeps import (
    POLICY,
    deduplicate_site,
    measure,
    sweep_deduplication,
)
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import CloneSpec, VolumeSpec
from provisioner.lib import clocks
from provisioner.sites.models import Site
from tests.support.factories import TemplateFactory, UserFactory
from tests.support.lab import Lab
from tests.support.ontap_scene import LabControl

pytestmark = pytest.mark.django_db

# One window, begun an hour before the tests and open for a day: a cron of every minute
# would begin a new one, and a new run, wherever a test crosses a full minute.
BEGUN = dt.datetime.now(dt.UTC) - dt.timedelta(hours=1)
ALWAYS = {"cron": f"{BEGUN:%-M %-H} * * *", "minutes": 24 * 60}
AWAY = "aggr2"
KIB = 1 << 10
R = DedupeRun.State


@pytest.fixture
def root() -> User:
    return UserFactory.create(username="root-admin", is_staff=True)


@pytest.fixture
def ontap(lab_site: Site, lab: Lab) -> Iterator[OntapGateway]:
    """The lab; the volumes of the test go afterwards, clones first."""
    ontap = registry.ontap(lab_site)
    before = {volume.uuid for volume in ontap.list_volumes()}
    yield ontap
    lab.break_ontap()
    LabControl(account=registry.ontap_account(lab_site)).set_settings(scan_seconds=0.0)
    new = [each for each in ontap.list_volumes() if each.uuid not in before]
    for volume in sorted(new, key=lambda each: each.clone_parent is None):
        ontap.stop_deduplication(volume.uuid)
        ontap.unmount_volume(volume.uuid)
        ontap.delete_volume(volume.uuid, force=True)


@pytest.fixture
def template(lab_site: Site, ontap: OntapGateway) -> Template:
    """A template whose volume holds three copies of each of some files."""
    template = TemplateFactory.create(site=lab_site, name=f"t{uuid.uuid4().hex[:8]}")
    volume = made(ontap, template.volume_name, site=lab_site)
    ontap.mount_volume(volume, junction_path=template.junction_path)
    Template.objects.filter(pk=template.pk).update(volume_uuid=volume)
    template.refresh_from_db()
    for number in range(4):
        content = os.urandom(96 * KIB + 100)
        for copy in range(3):
            (template.path / f"{copy}-{number}").write_bytes(content)
    return template


def made(ontap: OntapGateway, name: str, *, site: Site, aggregate: str = "") -> str:
    """Make a volume and return its uuid."""
    spec = VolumeSpec(
        name=name,
        aggregate=aggregate or site.aggregate,
        size_bytes=50 << 20,
        comment="",
        export_policy="default",
        uid=site.template_uid,
        gid=site.template_gid,
    )
    return ontap.create_volume(spec).uuid


def is_quiet(ontap: OntapGateway, template: Template) -> None:
    """Wait until ONTAP has ended its scan of a template's volume."""
    assert wait_until(
        lambda: (
            None
            if ontap.get_volume_efficiency(template.volume_uuid).is_scanning
            else True
        ),
        limit_seconds=60,
    )


def duplicates_below(root: Path) -> int:
    """Return the bytes of equal blocks of 4 KiB beyond the first of each."""
    seen: set[bytes] = set()
    duplicate = 0
    for path in sorted(root.iterdir()):
        if not path.is_file():
            continue
        data = path.read_bytes()
        for begin in range(0, len(data), 4 * KIB):
            block = data[begin : begin + 4 * KIB]
            digest = hashlib.sha256(block).digest()
            duplicate += len(block) if digest in seen else 0
            seen.add(digest)
    return duplicate


def looked(site: Site) -> str:
    """Look after a site as the sweep does, and return what came of it."""
    deduplicate_site(site.pk)
    return DedupePlan.objects.get(site=site).status


def states() -> list[str]:
    """Return the states of all runs, oldest first."""
    return list(DedupeRun.objects.order_by("pk").values_list("state", flat=True))


def test_what_a_run_saves_is_what_another_program_counts(
    template: Template, root: User, ontap: OntapGateway
) -> None:
    """Three copies save two thirds; the page, the run and ONTAP say so alike."""
    site = template.site
    dedupe_plan_save(by=root, site=site, is_on=True, **ALWAYS)

    assert looked(site) == "1 volume is being deduplicated, at most 2 at a time."
    is_quiet(ontap, template)
    assert looked(site) == "All volumes of the plan were deduplicated in this window."

    run = DedupeRun.objects.get()
    counted = duplicates_below(template.path)
    held = sum(path.stat().st_size for path in template.path.glob("?-?"))
    assert abs(counted / held - 2 / 3) < 0.001
    assert (run.state, run.saved_before_bytes) == (R.DONE, 0)
    assert run.saved_after_bytes == counted

    spec = CloneSpec(
        name=f"{template.volume_name}_c",
        parent_volume=template.volume_name,
        parent_snapshot=ontap.create_snapshot(
            template.volume_uuid, name="cl_7", comment=""
        ).name,
        comment="",
        uid=None,
        gid=None,
    )
    ontap.create_clone(spec)
    made(ontap, f"{template.volume_name}_2", site=site, aggregate=AWAY)
    # The lab measures a volume again after two seconds.
    assert wait_until(
        lambda: (
            (ontap.get_volume_efficiency(template.volume_uuid).logical_bytes or 0)
            >= held
            or None
        ),
        limit_seconds=60,
    )
    measure(site)
    measure(site)

    days = {day.kind: day for day in ReductionDay.objects.all()}
    assert set(days) == {"site", "template", "volume"}
    assert ReductionDay.objects.count() == 3
    assert days["template"].by_deduplication_bytes == counted
    assert days["volume"].by_deduplication_bytes == counted
    of_site = days["site"]
    shown = [
        each.efficiency.whole
        for each in ontap.list_aggregates()
        if each.name in (site.aggregate, AWAY) and each.efficiency is not None
    ]
    assert len(shown) == 2
    # Harvest: total_physical_used = logical_used - savings.
    logical = sum(each.logical_bytes for each in shown)
    saved = sum(each.saved_bytes for each in shown)
    assert of_site.logical_bytes == logical
    assert of_site.physical_bytes == logical - saved
    parts = (
        *(of_site.by_snapshots_bytes, of_site.by_clones_bytes),
        *(of_site.by_deduplication_bytes, of_site.by_compression_bytes),
    )
    assert sum(part or 0 for part in parts) == saved
    assert (of_site.by_deduplication_bytes or 0) >= counted


def test_a_lost_answer_and_a_killed_worker_start_a_scan_once(
    template: Template, root: User, ontap: OntapGateway, lab: Lab
) -> None:
    site = template.site
    dedupe_plan_save(by=root, site=site, is_on=True, **ALWAYS)
    path = f"/api/storage/volumes/{template.volume_uuid}"
    lab.break_ontap({"method": "PATCH", "path": path, "drop": True, "when": "after"})
    assert "Cloneyard tries again in a minute." in looked(site)
    assert states() == [R.REQUESTED]

    lab.break_ontap()
    is_quiet(ontap, template)
    looked(site)
    assert states() == [R.DONE]

    # As after a worker that was killed before it had asked ONTAP.
    before = ontap.get_volume_efficiency(template.volume_uuid).last_began_at
    DedupeRun.objects.update(state=R.REQUESTED, ended_at=None, previous_began_at=before)
    looked(site)
    assert states() == [R.RUNNING]
    is_quiet(ontap, template)
    looked(site)
    assert states() == [R.DONE]


def test_nothing_runs_while_the_site_is_busy_or_outside_of_a_window(
    template: Template, root: User, ontap: OntapGateway
) -> None:
    site = template.site
    control = LabControl(account=registry.ontap_account(site))
    dedupe_plan_save(by=root, site=site, is_on=True, **ALWAYS)
    build = Operation.objects.create(
        kind=TemplateOperation.BUILD, subject=template.subject, requested_by=root
    )
    assert looked(site) == (f"Waiting for a quiet time: {template} is being built.")
    assert states() == []

    Operation.objects.filter(pk=build.pk).update(
        state=Operation.State.SUCCEEDED, ended_at=clocks.database_now()
    )
    control.set_settings(scan_seconds=60.0)
    looked(site)
    month = clocks.database_now() - dt.timedelta(days=45)
    dedupe_plan_save(by=root, site=site, cron=f"0 3 1 {month:%-m} *", minutes=60)
    assert looked(site).startswith("The window has ended. The next begins on 1 ")
    assert states() == [R.STOPPED]
    assert not ontap.get_volume_efficiency(template.volume_uuid).is_scanning
    sweep_deduplication(timestamp=0)
    jobs = ProcrastinateJob.objects.filter(task_name="deduplicate_site")
    assert not jobs.exists()

    # The next window takes it up.
    control.set_settings(scan_seconds=0.0)
    dedupe_plan_save(by=root, site=site, **ALWAYS)
    sweep_deduplication(timestamp=60)
    assert jobs.count() == 1
    looked(site)
    is_quiet(ontap, template)
    looked(site)
    assert states() == [R.STOPPED, R.DONE]


def test_inline_volumes_are_left_alone_and_depots_come_along(
    template: Template, root: User, ontap: OntapGateway
) -> None:
    site = template.site
    ontap._write(
        "PATCH",
        f"/storage/volumes/{template.volume_uuid}",
        body={"efficiency": {"dedupe": "both"}},
    )
    depot = f"depot_{uuid.uuid4().hex[:8]}"
    made(ontap, depot, site=site)
    dedupe_plan_save(by=root, site=site, is_on=True, more_volumes=depot, **ALWAYS)

    looked(site)

    assert [run.volume.name for run in DedupeRun.objects.all()] == [depot]
    volume = template.dedupe_volumes.get()
    assert volume.is_inline


def test_a_policy_of_ontap_runs_what_it_can_say(
    template: Template, root: User, ontap: OntapGateway
) -> None:
    site, daily = template.site, {"cron": "10 0 * * *", "minutes": 120}
    plan = dedupe_plan_save(
        by=root, site=site, is_on=True, waits_for_quiet=False, **daily
    )
    measure(site)

    plan.refresh_from_db()
    assert plan.ontap_policy == POLICY
    assert ontap.get_volume_efficiency(template.volume_uuid).policy == POLICY
    assert looked(site) == f"The policy {POLICY} of ONTAP runs the plan."
    ontap.start_deduplication(template.volume_uuid, scans_all=True)  # as ONTAP does
    is_quiet(ontap, template)
    measure(site)
    measure(site)
    run = DedupeRun.objects.get()
    assert (run.state, run.is_ontaps_own) == (R.DONE, True)
    assert run.saved_after_bytes == duplicates_below(template.path)

    dedupe_plan_save(by=root, site=site, waits_for_quiet=True)
    measure(site)

    plan.refresh_from_db()
    assert plan.ontap_policy == ""
    assert ontap.get_volume_efficiency(template.volume_uuid).policy == ""
