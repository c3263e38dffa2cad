"""What is submitted to the lab is seen, once and in order, and refreshes templates."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import transaction
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import User
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.catalog.actions.refresh import refresh_pause, refresh_policy_save
from provisioner.catalog.actions.templates import (
    template_build,
    template_create,
    template_update,
)
from provisioner.catalog.freshness import refresh_state_of
from provisioner.catalog.models import (
    RefreshPolicy,
    ServerWatch,
    Snapshot,
    SubmittedChange,
    Template,
    TemplateWatch,
)
from provisioner.catalog.refresh_policy import due
from provisioner.catalog.sweeps import watch as watching
from provisioner.catalog.sweeps.refresh import refresh_all
from provisioner.catalog.sweeps.watch import (
    forget_old,
    pause_seconds,
    poll,
    record_batch,
    sweep_watch,
    watch_server,
)
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.sites.models import Site
from tests.support.behind import freshness_of, known_to_be_behind
from tests.support.builds import build, fails, succeeds
from tests.support.clock import Clock
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.lab import Lab
from tests.support.submits import submit

pytestmark = pytest.mark.django_db(transaction=True)

LATER = dt.timedelta(hours=2)


@pytest.fixture
def folder() -> str:
    return f"//depot/w{uuid.uuid4().hex[:8]}"


@pytest.fixture
def pair(
    lab: Lab, lab_site: Site, folder: str, jobs_emptied: None
) -> tuple[Template, Template]:
    """Two templates of different folders: a build of each has ended well."""
    admin = UserFactory.create(username="admin", is_staff=True)
    made = []
    for name in ("left", "right"):
        change = submit(lab, path=f"{folder}/{name}/first.txt")
        template = template_create(
            by=admin,
            site=lab_site,
            name=f"{name}{uuid.uuid4().hex[:6]}",
            view=f"{folder}/{name}/... //any/...\n-{folder}/{name}/doc/... "
            "//any/doc/...",
            volume_size_bytes=100 * 2**20,
        )
        succeeds(build(template, by=admin, change=change))
        template.refresh_from_db()
        made.append(template)
    return made[0], made[1]


def watch_of(template: Template) -> ServerWatch:
    watch, _ = ServerWatch.objects.get_or_create(server=template.site.perforce_server)
    return watch


def polled(template: Template) -> ServerWatch:
    """Poll the template's server; the poll worked."""
    watch = watch_of(template)
    poll(watch)
    watch.refresh_from_db()
    assert not watch.last_error, watch.last_error
    return watch


def keep_fresh(template: Template) -> None:
    refresh_policy_save(
        by=User.objects.get(username="admin"),
        template=template,
        mode="on_change",
        quiet_seconds=3600,
        every_seconds=0,
    )


def test_only_what_is_touched_is_refreshed_after_its_quiet_period(
    lab: Lab,
    pair: tuple[Template, Template],
    folder: str,
    run_jobs: Callable[[], None],
) -> None:
    left, right = pair
    keep_fresh(left)
    keep_fresh(right)
    polled(left)
    assert freshness_of(left) == freshness_of(right)
    submit(lab, path=f"{folder}/left/a.txt", user="alice")
    submit(lab, path=f"{folder}/left/b.txt", user="bob")
    newest = submit(lab, path=f"{folder}/left/a.txt", user="alice")

    polled(left)

    freshness = freshness_of(left)
    assert freshness is not None
    assert (freshness.changes, freshness.newest, freshness.by) == (
        3,
        newest,
        "alice and bob",
    )
    assert freshness.since is not None
    first = SubmittedChange.objects.get(number=newest)
    assert first.title == f"Change {folder}/left/a.txt"
    behind = freshness_of(right)
    assert behind is not None
    assert behind.changes == 0

    assert refresh_all(now=timezone.now()) == 0, "it is not quiet yet"
    assert refresh_all(now=timezone.now() + LATER) == 1
    assert refresh_all(now=timezone.now() + LATER) == 0, "it is being built"
    run_jobs()

    left.refresh_from_db()
    assert left.state == Template.State.READY, left.status_message
    assert left.snapshots.latest("created_at").change == newest
    build = left.operations.latest("created_at")
    assert build.requested_by.username == SYSTEM_USERNAME
    assert left.operations.count() == 2
    assert right.operations.count() == 1
    freshness = freshness_of(left)
    assert freshness is not None
    assert freshness.changes == 0
    assert refresh_all(now=timezone.now() + LATER) == 0


def test_a_change_that_touches_nothing_leaves_nothing(
    lab: Lab, pair: tuple[Template, Template], folder: str
) -> None:
    left, right = pair
    keep_fresh(left)
    keep_fresh(right)
    polled(left)
    before = (SubmittedChange.objects.count(), ProcrastinateJob.objects.count())
    newest = submit(lab, path=f"{folder}/left/doc/index.html")
    newest = submit(lab, path=f"{folder}/other/a.txt")

    watch = polled(left)

    assert watch.newest_change == newest
    assert refresh_all(now=timezone.now() + LATER) == 0
    after = (SubmittedChange.objects.count(), ProcrastinateJob.objects.count())
    assert after == before


def test_a_batch_that_was_not_recorded_is_fetched_again_and_counts_once(
    lab: Lab, pair: tuple[Template, Template], folder: str
) -> None:
    left, _ = pair
    reached = polled(left).newest_change
    assert reached is not None
    newest = submit(lab, path=f"{folder}/left/a.txt")
    watch = watch_of(left)
    perforce = registry.perforce(watch.server)
    batch = perforce.changes.submitted_after(reached, at_most=10)
    assert [change.number for change in batch.changes] == [newest]

    with transaction.atomic():  # killed before the end
        assert record_batch(watch, batch, reached=reached)
        transaction.set_rollback(True)
    watch.refresh_from_db()
    assert watch.newest_change == reached
    assert not SubmittedChange.objects.filter(number=newest).exists()

    polled(left)
    assert not record_batch(watch, batch, reached=reached), "another was faster"

    freshness = freshness_of(left)
    assert freshness is not None
    assert freshness.changes == 1


def test_missed_polls_are_caught_up_in_order_and_in_batches(
    lab: Lab,
    pair: tuple[Template, Template],
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left, _ = pair
    polled(left)
    numbers = [submit(lab, path=f"{folder}/left/a.txt", text=f"{n}") for n in range(5)]
    monkeypatch.setattr(watching, "CHANGES_AT_A_TIME", 2)
    monkeypatch.setattr(watching, "BATCHES_AT_A_TIME", 1)

    reached = []
    for _ in range(3):
        watch = polled(left)
        reached.append(watch.newest_change)
        seen = SubmittedChange.objects.filter(number__in=numbers)
        assert {row.number for row in seen} == {
            n for n in numbers if n <= (watch.newest_change or 0)
        }
    assert reached == [numbers[1], numbers[3], numbers[4]]
    freshness = freshness_of(left)
    assert freshness is not None
    assert (freshness.changes, freshness.newest) == (5, numbers[4])


def test_what_came_before_watching_began_is_found_backwards(
    lab: Lab,
    pair: tuple[Template, Template],
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left, _ = pair
    for n in range(3):
        submit(lab, path=f"{folder}/left/a.txt", text=f"{n}")
    ServerWatch.objects.all().delete()
    TemplateWatch.objects.all().delete()
    assert freshness_of(left) is None, "nobody knows yet"
    monkeypatch.setattr(watching, "CHANGES_AT_A_TIME", 2)
    monkeypatch.setattr(watching, "BATCHES_AT_A_TIME", 1)

    while freshness_of(left) is None:
        polled(left)

    freshness = freshness_of(left)
    assert freshness is not None
    assert freshness.changes == 3


def test_another_view_begins_anew(
    lab: Lab, pair: tuple[Template, Template], folder: str
) -> None:
    left, _ = pair
    submit(lab, path=f"{folder}/left/a.txt")
    submit(lab, path=f"{folder}/right/a.txt")
    submit(lab, path=f"{folder}/right/b.txt")
    polled(left)
    view = f"{folder}/right/... //any/..."
    admin = User.objects.get(username="admin")
    template_update(by=admin, template=left, view=view)

    polled(left)

    freshness = freshness_of(left)
    assert freshness is not None
    # first.txt of the right one came after the left one, which was built after both
    assert (
        freshness.changes
        == 2
        + SubmittedChange.objects.filter(
            templates=left, title=f"Change {folder}/right/first.txt"
        ).count()
    )


def test_a_server_that_was_restored_is_followed_from_there(
    pair: tuple[Template, Template],
) -> None:
    left, _ = pair
    newest = polled(left).newest_change
    assert newest is not None
    ServerWatch.objects.update(newest_change=newest + 1000)

    assert polled(left).newest_change == newest


def test_a_failed_refresh_waits_for_the_next_change(
    lab: Lab,
    pair: tuple[Template, Template],
    folder: str,
    run_jobs: Callable[[], None],
) -> None:
    left, _ = pair
    keep_fresh(left)
    Template.objects.filter(pk=left.pk).update(build_command="test ! -e broken.txt")
    polled(left)
    submit(lab, path=f"{folder}/left/broken.txt")
    polled(left)
    assert refresh_all(now=timezone.now() + LATER) == 1
    run_jobs()
    left.refresh_from_db()
    assert left.state == Template.State.FAILED

    assert refresh_all(now=timezone.now() + LATER) == 0
    submit(lab, path=f"{folder}/left/other.txt")
    polled(left)
    assert refresh_all(now=timezone.now() + LATER) == 1
    run_jobs()


@pytest.mark.parametrize("what", ["template", "server", "everything"])
def test_what_is_paused_is_not_refreshed(
    what: str, pair: tuple[Template, Template]
) -> None:
    left, _ = pair
    keep_fresh(left)
    watch = polled(left)
    change = SubmittedChange.objects.create(
        server=watch.server,
        number=10**6,
        user="alice",
        submitted_at=timezone.now(),
        recorded_at=timezone.now(),
    )
    change.templates.add(left)
    admin = User.objects.get(username="admin")

    if what == "template":
        refresh_policy_save(by=admin, template=left, mode="on_change", is_paused=True)
    else:
        server = watch.server if what == "server" else None
        refresh_pause(by=admin, server=server, is_paused=True)
    assert refresh_all(now=timezone.now() + LATER) == 0

    if what == "template":
        keep_fresh(left)
    else:
        refresh_pause(by=admin, server=server, is_paused=False)
    assert refresh_all(now=timezone.now() + LATER) == 1
    asked = Operation.objects.filter(subject=left.subject).order_by("pk")
    assert [o.requested_by.username for o in asked] == ["admin", SYSTEM_USERNAME]
    first, last = (
        ProcrastinateJob.objects.get(args__step_id=o.steps.earliest("position").pk)
        for o in asked
    )
    assert last.priority < first.priority, "people come first"


# --- without the lab


def test_a_change_that_somebody_chose_stays_until_something_new_comes(
    admin: User,
) -> None:
    snapshot = SnapshotFactory.create()
    template = snapshot.template
    known_to_be_behind(snapshot, "alice", "bob")
    policy = RefreshPolicy(
        mode=RefreshPolicy.Mode.ON_CHANGE, quiet_seconds=0, every_seconds=0
    )

    def reason() -> str | None:
        template.refresh_from_db()
        state = refresh_state_of(template, freshness=freshness_of(template))
        return due(timezone.now() + LATER, policy, replace(state, is_building=False))

    assert reason() is not None
    template_build(by=admin, template=template, change=snapshot.change)
    assert reason() is None
    new = SubmittedChange.objects.create(
        server=template.site.perforce_server,
        number=snapshot.change + 3,
        user="carol",
        submitted_at=timezone.now(),
        recorded_at=timezone.now(),
    )
    new.templates.add(template)
    assert reason() == f"Change {new.number} was submitted."


def test_a_clean_build_is_asked_for_when_its_time_comes(
    admin: User, clock: Clock
) -> None:
    snapshot = SnapshotFactory.create()
    template = snapshot.template
    fails(build(template, by=admin, change=snapshot.change))
    refresh_policy_save(
        by=admin, template=template, mode="manual", clean_cron="0 3 * * *"
    )
    assert refresh_all(now=clock.now) == 0, "it does not reach back"
    clock.at(dt.datetime(2026, 3, 3, 2, 59, 59, tzinfo=dt.UTC))
    assert refresh_all(now=clock.now) == 0
    clock.advance(seconds=1)

    assert refresh_all(now=clock.now) == 1

    asked = template.operations.latest("pk")
    assert asked.parameters == {"clean": True}
    assert asked.requested_by.username == SYSTEM_USERNAME
    reason = template.events.get(kind="template_refresh").message
    assert reason == "A clean build was due: 0 3 * * *."
    assert refresh_all(now=clock.advance(minutes=1)) == 0, "it is being built"
    fails(asked)
    assert refresh_all(now=clock.advance(minutes=1)) == 0, "once for each time"

    # Where it is behind as well, one build does for both.
    known_to_be_behind(snapshot, "alice")
    refresh_policy_save(
        by=admin, template=template, mode="on_change", clean_cron="0 3 * * *"
    )
    assert refresh_all(now=clock.advance(days=1)) == 1
    newest = snapshot.change + 1
    asked = template.operations.latest("pk")
    assert asked.parameters == {"change": newest, "clean": True}


def test_what_all_snapshots_have_is_forgotten() -> None:
    old = SnapshotFactory.create()
    template = old.template
    known_to_be_behind(old, "alice", "bob", "carol")
    newest = SnapshotFactory.create(template=template, change=old.change + 2)
    watch = watch_of(template)

    forget_old(watch)
    assert SubmittedChange.objects.count() == 3, "the old snapshot is still offered"
    Snapshot.objects.filter(pk=old.pk).update(deleted_at=timezone.now())
    for _ in range(2):
        forget_old(watch)

    assert [c.number for c in SubmittedChange.objects.all()] == [newest.change + 1]
    freshness = freshness_of(template)
    assert freshness is not None
    assert (freshness.changes, freshness.users) == (1, ("carol",))


def test_a_server_under_pressure_is_left_alone_longer_and_longer() -> None:
    template = SnapshotFactory.create().template  # nothing answers at its server's port
    watch = watch_of(template)
    pauses = []
    for failures in (1, 2, 3):
        began = timezone.now()
        poll(watch)
        watch.refresh_from_db()
        assert watch.failures == failures
        assert "cannot be reached" in watch.last_error
        assert watch.next_poll_at is not None
        pauses.append((watch.next_poll_at - began).total_seconds())
    assert pauses[0] >= 2 * 30 * 0.8
    assert pauses[2] >= 8 * 30 * 0.8
    assert pause_seconds(30, failures=99) <= 1800 * 1.2
    assert len({pause_seconds(30, failures=0) for _ in range(20)}) > 1


def test_one_poll_per_server_waits_however_many_templates(jobs_emptied: None) -> None:
    template = SnapshotFactory.create().template
    SnapshotFactory.create(template__site=template.site)
    for _ in range(2):
        sweep_watch(timestamp=0)
    [job] = ProcrastinateJob.objects.filter(task_name="watch_server")
    server_id = template.site.perforce_server_id
    assert job.args == {"server_id": server_id}
    assert job.queueing_lock == job.lock == f"watch_server.{server_id}"


def test_a_server_is_not_polled_before_its_time_nor_while_paused(
    jobs_emptied: None,
) -> None:
    watch = watch_of(SnapshotFactory.create().template)
    ServerWatch.objects.update(next_poll_at=timezone.now() + LATER)
    sweep_watch(timestamp=0)
    ServerWatch.objects.update(next_poll_at=None, is_paused=True)
    sweep_watch(timestamp=0)
    watch_server(server_id=watch.server_id)
    watch_server(server_id=0)
    assert not ProcrastinateJob.objects.filter(task_name="watch_server").exists()
    watch.refresh_from_db()
    assert watch.failures == 0


def test_a_server_without_built_templates_is_not_asked(
    template: Template, jobs_emptied: None
) -> None:
    sweep_watch(timestamp=0)
    assert not ProcrastinateJob.objects.filter(task_name="watch_server").exists()
    assert not TemplateWatch.objects.exists()
