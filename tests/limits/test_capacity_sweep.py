"""What a worker measures on the lab, and what ONTAP's own refusals come to."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable

import pytest
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Template
from provisioner.catalog.retention import pins_of
from provisioner.copies.models import WorkspaceCopy
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import CloneSpec
from provisioner.limits import sweeps as limit_sweeps
from provisioner.limits.queries import limits_of_sites
from provisioner.limits.tallies import Tallies
from provisioner.sites.models import AggregateDay, CapacityDay, Site, SiteCapacity
from provisioner.workspaces.actions.retiring import workspace_retry
from provisioner.workspaces.models import Workspace
from tests.support.entries import entries_below
from tests.support.factories import SiteFactory, UserFactory
from tests.support.jobs import POLL_EVERY_SECONDS, SETTLED_WITHIN_SECONDS
from tests.support.lab import Lab
from tests.support.ontap_scene import LabControl
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def owner(transactional_db: None) -> User:
    return UserFactory.create(username="alice", uid=20001, gid=20000)


def test_volumes_on_other_aggregates_promise_nothing_of_this_one(
    lab_workspace: Workspace,
) -> None:
    """They count among the volumes of the SVM, and not against this one's size."""
    site = lab_workspace.site
    before = limit_sweeps.measure(site)
    assert before.provisioned_bytes > 0

    site.aggregate = "aggr_of_others"
    after = limit_sweeps.measure(site)

    assert after.provisioned_bytes == 0
    assert after.volumes == before.volumes


def test_a_site_is_measured(lab_workspace: Workspace) -> None:
    began_at = timezone.now()
    long_ago = began_at.date() - dt.timedelta(days=400)
    CapacityDay.objects.create(site=lab_workspace.site, day=long_ago, clones=7)

    measured = limit_sweeps.measure(lab_workspace.site)

    assert measured.ontap_version == "9.16.1"
    assert measured.aggregate_size_bytes == (
        measured.aggregate_used_bytes + measured.aggregate_available_bytes
    )
    assert measured.aggregate_size_bytes > 0
    assert measured.logical_bytes is not None
    assert measured.saved_bytes is not None
    assert measured.saved_within_bytes is not None
    assert 0 <= measured.saved_within_bytes <= measured.saved_bytes
    assert measured.saved_bytes < measured.logical_bytes
    assert measured.volumes >= 2
    assert measured.max_volumes == 12_000
    assert measured.provisioned_bytes >= 2 * lab_workspace.template.volume_size_bytes
    assert measured.measured_at is not None
    assert measured.measured_at >= began_at
    assert measured.status_message == ""
    lab_workspace.refresh_from_db()
    assert lab_workspace.unique_bytes is not None
    assert lab_workspace.unique_bytes >= 0
    assert lab_workspace.measured_at is not None

    # One row keeps the day, and what is too long ago goes.
    again = limit_sweeps.measure(lab_workspace.site)
    day = CapacityDay.objects.get()
    assert day.day in (began_at.date(), timezone.now().date())
    assert (day.size_bytes, day.clones) == (again.aggregate_size_bytes, 1)
    assert day.used_bytes == again.aggregate_used_bytes
    other = AggregateDay.objects.get(name="aggr2")
    assert 0 <= other.used_bytes <= other.size_bytes
    assert not AggregateDay.objects.filter(name=lab_workspace.site.aggregate).exists()


def test_what_a_workspace_takes_grows_with_what_is_written(
    lab_workspace: Workspace,
) -> None:
    limit_sweeps.measure(lab_workspace.site)
    lab_workspace.refresh_from_db()
    before = lab_workspace.unique_bytes or 0
    (lab_workspace.path / "big").write_bytes(os.urandom(5 << 20))

    # ONTAP's figures follow what is written after a while.
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while (lab_workspace.unique_bytes or 0) < before + (5 << 20):
        assert time.monotonic() < ends, lab_workspace.unique_bytes
        time.sleep(POLL_EVERY_SECONDS)
        limit_sweeps.measure(lab_workspace.site)
        lab_workspace.refresh_from_db()


def test_volumes_of_others_are_counted_apart(
    owner: User, built_template: Template, run_jobs: Callable[[], None]
) -> None:
    site, snapshot = built_template.site, built_template.snapshots.get()
    workspace_create(by=owner, template=built_template)
    run_jobs()
    before = limit_sweeps.measure(site)
    ontap = registry.ontap(site)
    foreign = ontap.create_clone(
        CloneSpec(
            name=f"somebodys_{built_template.name}",
            parent_volume=built_template.volume_name,
            parent_snapshot=snapshot.name,
            comment="not ours",
            uid=None,
            gid=None,
        )
    )
    try:
        after = limit_sweeps.measure(site)
    finally:
        ontap.delete_volume(foreign.uuid, force=True)

    assert after.volumes_of_others == before.volumes_of_others + 1
    built_template.refresh_from_db()
    snapshot.refresh_from_db()
    assert (built_template.clones_of_others, snapshot.clones_of_others) == (1, 1)
    assert built_template.snapshots_in_volume == 1
    limit_sweeps.measure(site)
    built_template.refresh_from_db()
    snapshot.refresh_from_db()
    assert (built_template.clones_of_others, snapshot.clones_of_others) == (0, 0)


def test_volumes_of_copies_are_ours_and_measured(
    owner: User, built_template: Template, run_jobs: Callable[[], None]
) -> None:
    site, snapshot = built_template.site, built_template.snapshots.get()
    workspace = workspace_create(by=owner, template=built_template)
    run_jobs()
    before, counted = limit_sweeps.measure(site), clones_counted()
    ontap = registry.ontap(site)
    copy = WorkspaceCopy.objects.create(workspace=workspace, site=site, name="copy")
    volume = ontap.create_clone(
        CloneSpec(
            name=copy.volume_name,
            parent_volume=built_template.volume_name,
            parent_snapshot=snapshot.name,
            comment=copy.volume_comment,
            uid=None,
            gid=None,
        )
    )
    WorkspaceCopy.objects.update(volume_uuid=volume.uuid)
    try:
        after = limit_sweeps.measure(site)
    finally:
        ontap.delete_volume(volume.uuid, force=True)

    assert after.volumes == before.volumes + 1
    assert after.volumes_of_others == before.volumes_of_others
    snapshot.refresh_from_db()
    assert snapshot.clones_of_others == 0
    assert clones_counted() == counted + 1
    copy.refresh_from_db()
    assert (copy.actual_size_bytes, copy.aggregate) == (
        volume.size_bytes,
        volume.aggregate,
    )
    [pin] = pins_of(built_template)
    assert pin.held_for == ["a copy of a workspace is a clone of it"]


def clones_counted() -> int:
    [of_site] = limits_of_sites(Tallies())
    [limit] = [each for each in of_site.limits if each.code == "clone_limit"]
    assert limit.used is not None
    return limit.used


def test_a_clone_that_was_split_in_ontap_is_known_to_be_independent(
    lab_workspace: Workspace,
) -> None:
    site, snapshot = lab_workspace.site, lab_workspace.snapshot
    limit_sweeps.measure(site)
    assert pins_of(snapshot.template)[0].workspaces == [lab_workspace]
    before = clones_counted()
    ontap = registry.ontap(site)
    ontap.start_clone_split(lab_workspace.volume_uuid)
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while ontap.get_clone_split(lab_workspace.volume_uuid).is_clone:
        assert time.monotonic() < ends
        time.sleep(POLL_EVERY_SECONDS)

    limit_sweeps.measure(site)
    limit_sweeps.measure(site)

    lab_workspace.refresh_from_db()
    assert lab_workspace.is_independent
    assert Event.objects.filter(kind="workspace_independent").count() == 1
    assert pins_of(snapshot.template)[0].workspaces == []
    assert clones_counted() == before - 1
    tally = Tallies().by_template[snapshot.template_id]
    assert (tally.clones, tally.independent) == (1, 1)


def test_every_site_is_measured_by_workers_that_reach_it(
    lab_site: Site, run_jobs: Callable[[], None]
) -> None:
    dark = SiteFactory.create(name="dark", perforce_server=lab_site.perforce_server)
    limit_sweeps.sweep_capacity(timestamp=0)
    limit_sweeps.sweep_capacity(timestamp=120)
    jobs = ProcrastinateJob.objects.filter(task_name="measure_site")
    assert [job.queue_name for job in jobs] == ["storage", "storage"]

    run_jobs()

    assert SiteCapacity.objects.get(site=lab_site).status_message == ""
    unreached = SiteCapacity.objects.get(site=dark)
    assert unreached.measured_at is None
    assert "could not be reached" in unreached.status_message


def test_a_failure_keeps_what_was_measured_before(lab_site: Site, lab: Lab) -> None:
    before = limit_sweeps.measure(lab_site)
    lab.break_ontap({"method": "GET", "path": "/api/storage/volumes*", "status": 503})

    limit_sweeps.measure_site(site_id=lab_site.pk)

    after = SiteCapacity.objects.get(site=lab_site)
    assert after.status_message != ""
    assert after.measured_at == before.measured_at
    assert after.volumes == before.volumes

    limit_sweeps.measure_site(site_id=lab_site.pk)
    still = SiteCapacity.objects.get(site=lab_site)
    assert still.failing_since == after.failing_since
    lab.break_ontap()
    assert limit_sweeps.measure(lab_site).failing_since is None


def test_an_account_that_sees_no_aggregates_measures_the_rest(lab_site: Site) -> None:
    lab_site.aggregate = "aggr_elsewhere"

    measured = limit_sweeps.measure(lab_site)

    assert measured.aggregate_size_bytes == 0
    assert "aggr_elsewhere" in measured.status_message
    assert measured.measured_at is not None


def test_a_site_that_is_gone_is_not_measured(transactional_db: None) -> None:
    limit_sweeps.measure_site(site_id=10**9)


# --- ONTAP itself says no


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ({"max_clones_per_volume": 0}, "clone_limit"),
        ({"max_volumes_per_svm": 1}, "volume_limit"),
        ({"aggregate_is_full": True}, "space_low"),
    ],
)
def test_a_clone_that_ontap_refuses_is_refused_in_the_same_words(
    setting: dict[str, object],
    code: str,
    owner: User,
    published_template: Template,
    run_jobs: Callable[[], None],
    control: LabControl,
) -> None:
    before = control.settings()
    control.set_settings(**setting)

    workspace = workspace_create(by=owner, template=published_template)
    run_jobs()

    workspace.refresh_from_db()
    assert (workspace.state, workspace.status_code) == (Workspace.State.FAILED, code)
    assert "Retire and purge workspaces that nobody" in workspace.status_message

    control.set_settings(**before)
    workspace_retry(by=owner, workspace=workspace)
    run_jobs()
    workspace.refresh_from_db()
    assert workspace.state == Workspace.State.READY, workspace.status_message


def test_a_snapshot_that_ontap_refuses_fails_the_build_in_the_same_words(
    built_template: Template, run_jobs: Callable[[], None], control: LabControl
) -> None:
    control.set_settings(max_snapshots_per_volume=1)

    template_build(by=built_template.owner, template=built_template)
    run_jobs()

    built_template.refresh_from_db()
    assert built_template.state == Template.State.FAILED
    assert built_template.status_code == "snapshot_limit"


def test_a_volume_that_is_short_of_inodes_gets_more(lab_workspace: Workspace) -> None:
    site, ontap = lab_workspace.site, registry.ontap(lab_workspace.site)
    used = inodes_used(lab_workspace)
    ontap.set_max_inodes(lab_workspace.volume_uuid, max_inodes=used + 1)

    limit_sweeps.measure(site)

    lab_workspace.refresh_from_db()
    assert (lab_workspace.used_inodes, lab_workspace.max_inodes) == (used, used + 1)
    assert ontap.get_volume(lab_workspace.volume_uuid).max_inodes == 2 * used
    limit_sweeps.measure(site)
    lab_workspace.refresh_from_db()
    assert lab_workspace.max_inodes == 2 * used
    assert ontap.get_volume(lab_workspace.volume_uuid).max_inodes == 2 * used


def test_a_volume_that_ontap_gives_no_more_inodes_stays_as_it_is(
    lab_workspace: Workspace, lab: Lab
) -> None:
    ontap = registry.ontap(lab_workspace.site)
    few = inodes_used(lab_workspace) + 1
    ontap.set_max_inodes(lab_workspace.volume_uuid, max_inodes=few)
    lab.break_ontap({"status": 403, "code": "6", "method": "PATCH", "times": 1})

    measured = limit_sweeps.measure(lab_workspace.site)

    assert measured.status_message == ""
    assert ontap.get_volume(lab_workspace.volume_uuid).max_inodes == few
    lab.break_ontap()


def inodes_used(workspace: Workspace) -> int:
    """Return what is in use, once that was measured and the limit may be lowered."""
    ontap = registry.ontap(workspace.site)
    there = 1 + sum(1 for _ in entries_below(workspace.path))
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while ontap.get_volume(workspace.volume_uuid).used_inodes != there:
        assert time.monotonic() < ends
        time.sleep(POLL_EVERY_SECONDS)
    return there
