"""Warm pools: claims, and what the sweep makes, replaces and lets go."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import ApiToken, Team, User
from provisioner.accounts.refusals import AccountIncomplete, AccountNotActive
from provisioner.accounts.tokens import token_create
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine import states as engine_states
from provisioner.engine.dispatch import BEHIND_REQUESTS
from provisioner.engine.models import Operation, Step
from provisioner.engine.queries import operations_visible_to
from provisioner.gateways import registry
from provisioner.leases import queries as lease_queries
from provisioner.leases.abandoned import abandoned_workspaces
from provisioner.leases.actions.policies import lease_policy_preview
from provisioner.leases.sweeps.leases import sweep_leases
from provisioner.lib.limits import LimitReached
from provisioner.lib.refusals import InvalidRequest, NameTaken, NotAllowed
from provisioner.notify.actions.webhooks import webhook_create
from provisioner.notify.models import WebhookDelivery
from provisioner.pools import queries as pool_queries
from provisioner.pools.actions import pool_create, pool_delete, pool_update
from provisioner.pools.models import Pool
from provisioner.pools.refusals import PoolExists
from provisioner.pools.sweeps import AT_ONCE, sweep_pools
from provisioner.workspace_requests.claim import why_cold
from provisioner.workspaces.actions.retiring import locked, workspace_retire
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.queries import seconds_it_took, workspaces_visible_to
from provisioner.workspaces.ready_times import usual_seconds
from tests.support.crossing import (
    in_a_connection_of_its_own,
    wait_until_somebody_waits_for_a_lock,
)
from tests.support.factories import SnapshotFactory, UserFactory, purge
from tests.support.requests import workspace_create
from tests.support.warm_pools import fail, filled, finish, make_pool

W = Workspace.State
READY = W.READY


@pytest.fixture
def pool(ci: User, snapshot: Snapshot) -> Pool:
    """CI's pool of three, empty yet."""
    return make_pool(snapshot.template, ci, size=3)


def claim(pool: Pool, **asked: Any) -> Workspace:
    asked = {"purpose": pool.purpose, **asked}
    return workspace_create(by=pool.owner, template=pool.template, **asked)


def members(pool: Pool, *states_: str) -> list[Workspace]:
    return list(pool_queries.members_of(pool).filter(state__in=states_ or W.values))


def later(pool: Pool, seconds: float) -> None:
    """Let all that happened in a pool have happened so much earlier."""
    shift = dt.timedelta(seconds=seconds)
    for row in (pool, *Workspace.objects.filter(pool=pool)):
        row.refresh_from_db()
        names = ("created_at", "changed_at", "ready_at", "failed_at", "retry_at")
        moved = {n: getattr(row, n) for n in names if getattr(row, n, None)}
        type(row)._base_manager.filter(pk=row.pk).update(
            **{name: value - shift for name, value in moved.items()}
        )
    for operation in Operation.objects.filter(subject__workspace__pool=pool):
        Operation.objects.filter(pk=operation.pk).update(
            created_at=operation.created_at - shift,
            ended_at=operation.ended_at and operation.ended_at - shift,
        )


# --- claiming


def test_what_lies_ready_is_handed_out_with_nothing_left_to_do(pool: Pool) -> None:
    [oldest, *_] = filled(pool)
    jobs, operations = ProcrastinateJob.objects.count(), Operation.objects.count()

    got = claim(pool, name="mine", lease_seconds=900, heartbeat_seconds=60)

    assert got.pk == oldest.pk
    got.refresh_from_db()
    assert (got.state, got.is_pooled, got.is_warm) == (READY, False, True)
    assert (got.name, got.owner) == ("mine", pool.owner)
    assert (got.volume_name, got.client_name, got.junction_path) == (
        oldest.volume_name,
        oldest.client_name,
        f"/w-{oldest.name}",
    )
    assert ProcrastinateJob.objects.count() == jobs
    assert Operation.objects.count() == operations
    assert got.expires_at is not None
    assert got.expires_at - got.created_at == dt.timedelta(seconds=900)
    assert not lease_queries.is_silent(got, timezone.now())
    event = got.events.get(kind="workspace_claimed")
    assert event.actor == pool.owner
    assert event.data["seconds_saved"] == got.seconds_saved


def test_a_claim_costs_few_queries(pool: Pool) -> None:
    filled(pool)

    with CaptureQueriesContext(
        connection,
    ) as queries:
        claim(pool)

    # No step, no job, and none that grows with what is there.
    assert len(queries) <= 17, [query["sql"][:90] for query in queries]


def test_what_is_saved_is_the_longest_way_through_the_steps(pool: Pool) -> None:
    [member, *_] = filled(pool)
    began = timezone.now()
    took: dict[str, float] = {
        "access": 1,
        "clone": 2,
        "export": 1,
        "mount": 1,
        "owner": 3,
    }
    took |= {"client": 1, "flush": 4, "p4config": 0.5}
    for step in Step.objects.filter(operation__subject__workspace=member):
        ended = began + dt.timedelta(seconds=took[step.name])
        Step.objects.filter(pk=step.pk).update(started_at=began, ended_at=ended)

    assert seconds_it_took(member) == 8.5
    # Where the sweep has not come by yet, the claim works it out.
    Workspace.objects.update(seconds_saved=None)
    assert claim(pool).seconds_saved == 8.5


def test_the_sweep_works_out_what_a_claim_will_save(pool: Pool) -> None:
    [member, *_] = filled(pool)

    member.refresh_from_db()
    assert member.seconds_saved == seconds_it_took(member) > 0
    assert claim(pool).seconds_saved == member.seconds_saved


def test_its_clock_begins_when_it_is_claimed(pool: Pool) -> None:
    filled(pool)
    later(pool, 7200)

    got = claim(pool, heartbeat_seconds=60)
    sweep_leases(timestamp=0)

    got.refresh_from_db()
    assert got.state == READY
    assert timezone.now() - got.created_at < dt.timedelta(minutes=5)
    assert got.made_ahead_at is not None
    assert got.created_at - got.made_ahead_at >= dt.timedelta(hours=2)


def test_a_taken_name_takes_no_member(pool: Pool) -> None:
    filled(pool)
    claim(pool, name="mine")

    with pytest.raises(NameTaken):
        claim(pool, name="mine")

    assert len(members(pool, READY)) == 2


def test_a_repeated_request_takes_one(pool: Pool) -> None:
    filled(pool)
    first = claim(pool, request_key="build 7")

    again = claim(pool, request_key="build 7")

    assert (again.pk, again.was_asked_for_before) == (first.pk, True)
    assert len(members(pool, READY)) == 2


def test_quotas_hold_for_what_lies_ready(pool: Pool) -> None:
    filled(pool)
    User.objects.filter(pk=pool.owner_id).update(max_workspaces=1)
    pool.owner.refresh_from_db()
    claim(pool)

    with pytest.raises(LimitReached) as refused:
        claim(pool)

    assert refused.value.limit.code == "quota_workspaces"
    assert len(members(pool, READY)) == 2


def test_a_token_holds_for_what_lies_ready(pool: Pool) -> None:
    filled(pool)
    token, _ = token_create(by=pool.owner, max_workspaces=1, max_lease_seconds=600)
    pool.owner.token = ApiToken.objects.get(pk=token.pk)

    got = claim(pool)

    assert got.token == token
    assert got.expires_at is not None
    assert got.expires_at - got.created_at <= dt.timedelta(seconds=600)
    with pytest.raises(LimitReached) as refused:
        claim(pool)
    assert refused.value.limit.code == "token_workspaces"


def test_nobody_else_gets_one(pool: Pool, alice: User) -> None:
    filled(pool)

    got = workspace_create(by=alice, template=pool.template, purpose="ci")

    assert (got.is_warm, got.cold_reason, got.pool) == (False, "no_pool", None)
    assert "No warm pool fits this request" in got.start_sentence
    assert len(members(pool, READY)) == 3


def test_where_there_are_no_pools_nobody_hears_of_them(
    template: Template, snapshot: Snapshot, alice: User
) -> None:
    got = workspace_create(by=alice, template=template)

    assert got.start_sentence == "Created on request."


@pytest.mark.parametrize(
    ("prepare", "asked", "reason"),
    [
        (lambda pool: None, {"purpose": "build"}, "no_pool"),
        (lambda pool: None, {"wants_reconcile": True}, "reconcile"),
        (
            lambda pool: SnapshotFactory.create(template=pool.template),
            {},
            "pool_renewed",
        ),
        (lambda pool: later(pool, 25 * 3600), {}, "pool_renewed"),
        (
            lambda pool: User.objects.filter(pk=pool.owner_id).update(uid=4711),
            {},
            "pool_renewed",
        ),
        (
            lambda pool: User.objects.filter(pk=pool.owner_id).update(gid=4711),
            {},
            "pool_renewed",
        ),
        (
            lambda pool: User.objects.filter(pk=pool.owner_id).update(p4_user="other"),
            {},
            "pool_renewed",
        ),
        (
            lambda pool: Workspace.objects.update(client_type="partitioned"),
            {},
            "pool_renewed",
        ),
        (
            lambda pool: Pool.objects.update(size=0) and sweep_pools(timestamp=0),
            {},
            "pool_resting",
        ),
        (lambda pool: [claim(pool) for _ in range(3)], {}, "pool_empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_answer_says_why_it_is_cold(
    pool: Pool, prepare: Callable[[Pool], Any], asked: dict[str, Any], reason: str
) -> None:
    filled(pool)
    prepare(pool)
    pool.owner.refresh_from_db()

    got = claim(pool, **asked)

    assert (got.is_warm, got.cold_reason) == (False, reason)
    assert got.state == W.PROVISIONING
    assert got.start_sentence.startswith("Created on request. ")
    assert got.seconds_saved is None


def test_one_that_loses_the_last_to_another_finds_an_empty_pool(
    pool: Pool, snapshot: Snapshot
) -> None:
    filled(pool)

    def ask_and_be_late(
        execute: Callable[..., Any], sql: str, params: Any, *rest: Any
    ) -> Any:
        answer = execute(sql, params, *rest)
        if READY in params and not sql.startswith("UPDATE"):
            pool_queries.members_of(pool).update(is_pooled=False)
        return answer

    with connection.execute_wrapper(ask_and_be_late):
        reason = why_cold(
            pool,
            template=pool.template,
            site=pool.site,
            snapshot=snapshot,
            client_type="readonly",
            wants_reconcile=False,
            now=timezone.now(),
        )

    assert not members(pool)
    assert reason == "pool_empty"


def test_another_snapshot_is_made(pool: Pool) -> None:
    older = pool.template.snapshots.get()
    SnapshotFactory.create(template=pool.template)
    filled(pool)

    assert claim(pool, snapshot=older).cold_reason == "other_snapshot"
    newest = pool.template.snapshots.first()
    assert claim(pool, snapshot=newest).is_warm
    assert claim(pool, quality="built").is_warm


def test_one_with_work_under_way_is_passed_over(pool: Pool, admin: User) -> None:
    [oldest, *_] = filled(pool)
    Operation.objects.create(
        kind=WorkspaceOperation.CHECK, subject=oldest.subject, requested_by=admin
    )

    assert claim(pool).pk != oldest.pk


@pytest.mark.django_db(transaction=True)
def test_what_somebody_holds_is_passed_over(pool: Pool) -> None:
    [oldest, *_] = filled(pool)

    def claim_elsewhere() -> int:
        try:
            return claim(pool).pk
        finally:
            connection.close()

    with transaction.atomic(), ThreadPoolExecutor(1) as executor:
        Workspace.objects.select_for_update().get(pk=oldest.pk)
        assert executor.submit(claim_elsewhere).result() != oldest.pk


@pytest.mark.django_db(transaction=True)
def test_each_of_many_gets_one_of_its_own(pool: Pool) -> None:
    Pool.objects.update(size=6)
    lying = {member.pk for member in filled(pool)}
    assert len(lying) == 6

    def ask(number: int) -> tuple[int, bool]:
        try:
            got = claim(pool, request_key=f"job {number}")
            return got.pk, got.is_warm
        finally:
            connection.close()

    with ThreadPoolExecutor(10) as executor:
        got = list(executor.map(ask, range(10)))

    assert len({pk for pk, _ in got}) == 10
    assert {pk for pk, is_warm in got if is_warm} == lying
    cold = Workspace.objects.filter(cold_reason="pool_empty")
    assert cold.count() == 4
    assert len(set(Workspace.objects.values_list("name", flat=True))) == 10


@pytest.mark.django_db(transaction=True)
def test_who_is_bounded_by_nothing_waits_for_no_other_claim(pool: Pool) -> None:
    filled(pool)

    with ThreadPoolExecutor(1) as executor, transaction.atomic():
        first = claim(pool, request_key="one job")
        second = executor.submit(claimed, pool, "another").result(timeout=20)

    assert second is not None
    assert second.is_warm
    assert (first.name, second.name) == (f"ci-main-{first.pk}", f"ci-main-{second.pk}")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("whose", ["person", "team", "token"])
def test_a_bound_holds_for_many_claims_at_once(pool: Pool, whose: str) -> None:
    Pool.objects.update(size=6)
    filled(pool)
    owner = pool.owner
    if whose == "person":
        owner.max_workspaces = 2
    elif whose == "team":
        owner.team = Team.objects.create(name="builders", max_workspaces=2)
    else:
        token_create(by=owner, max_workspaces=2)
        owner.token = owner.auth_token_set.get()
    owner.save()

    with ThreadPoolExecutor(6) as executor:
        got = list(executor.map(partial(claimed, pool), map(str, range(6))))

    assert sum(one is not None for one in got) == 2
    assert len(members(pool, READY)) == 4


@pytest.mark.django_db(transaction=True)
def test_a_pool_is_deleted_while_a_workspace_is_made_without_it(
    pool: Pool, admin: User
) -> None:
    delete = in_a_connection_of_its_own(lambda: pool_delete(by=admin, pool=pool))
    with ThreadPoolExecutor(1) as executor:
        with transaction.atomic():
            workspace = claim(pool)
            deleted = executor.submit(delete)
            wait_until_somebody_waits_for_a_lock()
        deleted.result()

    workspace.refresh_from_db()
    assert (workspace.pool, workspace.cold_reason) == (None, "pool_empty")


@pytest.mark.django_db(transaction=True)
def test_a_pool_that_was_found_is_gone_when_the_workspace_is_made(
    pool: Pool, admin: User
) -> None:
    delete = in_a_connection_of_its_own(lambda: pool_delete(by=admin, pool=pool))

    def find_it_and_be_late(
        execute: Callable[..., Any], sql: str, params: Any, *rest: Any
    ) -> Any:
        answer = execute(sql, params, *rest)
        if sql.startswith('SELECT "pools_pool"') and Pool.objects.exists():
            with ThreadPoolExecutor(1) as executor:
                executor.submit(delete).result()
        return answer

    with connection.execute_wrapper(find_it_and_be_late):
        workspace = claim(pool)

    workspace.refresh_from_db()
    assert (workspace.pool, workspace.cold_reason) == (None, "")


def claimed(pool: Pool, key: str) -> Workspace | None:
    """Claim on a connection of this thread's own; return None where that is refused."""
    try:
        return claim(pool, request_key=key)
    except LimitReached:
        return None
    finally:
        connection.close()


def test_a_made_up_name_that_is_taken_is_passed_over(pool: Pool) -> None:
    [oldest, *_] = filled(pool)
    workspace_create(by=pool.owner, template=pool.template, name=f"ci-main-{oldest.pk}")

    got = claim(pool)

    assert (got.pk, got.name) == (oldest.pk, "ci-main")


# --- whose they are


def test_members_are_nobodys_yet(pool: Pool, admin: User) -> None:
    User.objects.filter(pk=pool.owner_id).update(max_workspaces=3)
    hook = webhook_create(
        by=pool.owner, url="https://hooks.example.com/", events=["workspace.ready"]
    )
    filled(pool)
    later(pool, 365 * 86400)
    Workspace.objects.update(activity_seen_at=timezone.now())

    for person in (pool.owner, admin):
        assert not workspaces_visible_to(person).exists()
    assert not operations_visible_to(pool.owner).exists()
    assert abandoned_workspaces(admin).workspaces == ()
    sweep_leases(timestamp=0)
    assert len(members(pool, READY)) == 3
    assert not WebhookDelivery.objects.exists()
    preview = lease_policy_preview(
        by=admin,
        template=None,
        purpose="ci",
        default_seconds=60,
        maximum_seconds=60,
        trash_seconds=0,
        warn_seconds=(),
    )
    assert preview.affected == ()
    assert hook.is_enabled


def test_nobody_waited_for_what_was_made_ahead(pool: Pool) -> None:
    filled(pool)
    claim(pool)

    assert usual_seconds([pool.template]) == {}


def test_a_claim_sends_the_event_of_a_ready_workspace(pool: Pool) -> None:
    webhook_create(
        by=pool.owner, url="https://hooks.example.com/", events=["workspace.ready"]
    )
    filled(pool)

    got = claim(pool)

    told = WebhookDelivery.objects.get()
    assert told.event == "workspace.ready"
    assert f'"id": {got.pk}' in told.body


def test_members_count_for_what_the_volume_can_have(pool: Pool, alice: User) -> None:
    filled(pool)
    site = pool.template.site
    site.clones_per_volume = 3
    site.save()

    with pytest.raises(LimitReached) as refused:
        workspace_create(by=alice, template=pool.template)

    assert refused.value.limit.code == "clone_limit"


# --- the sweep


def test_a_pool_is_filled_behind_requests(pool: Pool) -> None:
    Pool.objects.update(size=AT_ONCE + 2)

    sweep_pools(timestamp=0)

    assert len(members(pool, W.PROVISIONING)) == AT_ONCE
    assert {job.priority for job in ProcrastinateJob.objects.all()} == {BEHIND_REQUESTS}
    sweep_pools(timestamp=0)
    assert len(members(pool)) == AT_ONCE
    finish(members(pool)[0])
    sweep_pools(timestamp=0)
    assert len(members(pool)) == AT_ONCE + 1


def test_nothing_is_begun_while_others_wait(pool: Pool, alice: User) -> None:
    hers = workspace_create(by=alice, template=pool.template)

    sweep_pools(timestamp=0)

    pool.refresh_from_db()
    assert members(pool) == []
    assert "Requests are waiting" in pool.status_message
    Step.objects.filter(operation__subject__workspace=hers).update(
        state=Step.State.RUNNING, started_at=timezone.now()
    )
    sweep_pools(timestamp=0)
    pool.refresh_from_db()
    assert len(members(pool)) == 3
    assert pool.status_message == ""


def test_the_last_fifth_of_a_limit_is_left(pool: Pool) -> None:
    site = pool.template.site
    site.clones_per_volume = 2
    site.save()

    filled(pool)

    pool.refresh_from_db()
    assert len(members(pool)) == 2
    site.clones_per_volume = 5
    site.save()
    Pool.objects.update(size=10)
    filled(pool)
    pool.refresh_from_db()
    assert len(members(pool)) == 4
    assert "clone" in pool.status_message


def test_a_new_snapshot_replaces_the_pool(pool: Pool) -> None:
    old = filled(pool)
    newer = SnapshotFactory.create(template=pool.template)

    sweep_pools(timestamp=0)

    leaving = members(pool, W.RETIRING)
    assert [member.pk for member in leaving] == [member.pk for member in old]
    made = members(pool, W.PROVISIONING)
    assert {member.snapshot for member in made} == {newer}
    # Never more than twice its size, however long retiring takes.
    assert len(made) == 3
    sweep_pools(timestamp=0)
    assert len(members(pool)) == 6


def test_what_is_made_of_an_older_snapshot_goes_at_once(pool: Pool) -> None:
    sweep_pools(timestamp=0)
    SnapshotFactory.create(template=pool.template)

    sweep_pools(timestamp=0)

    assert len(members(pool, W.RETIRING)) == 3


@pytest.mark.parametrize(
    "change",
    [
        lambda pool: later(pool, 25 * 3600),
        lambda pool: User.objects.filter(pk=pool.owner_id).update(p4_user="other"),
        lambda pool: User.objects.filter(pk=pool.owner_id).update(is_active=False),
        lambda pool: Pool.objects.update(size=0),
        lambda pool: Snapshot.objects.update(deleted_at=timezone.now()),
        lambda pool: pool.delete(),
    ],
    ids=["age", "account", "inactive", "size", "no snapshot", "deleted"],
)
def test_what_does_not_belong_there_is_retired(
    pool: Pool, change: Callable[[Pool], Any]
) -> None:
    old = {member.pk for member in filled(pool)}
    change(pool)

    sweep_pools(timestamp=0)

    leaving = Workspace.objects.filter(state=W.RETIRING)
    assert set(leaving.values_list("pk", flat=True)) == old
    operation = Operation.objects.filter(subject__workspace__in=leaving).first()
    assert operation is not None
    assert operation.parameters["purge"] is True


def test_what_was_claimed_is_no_affair_of_the_sweep(pool: Pool) -> None:
    filled(pool)
    got = claim(pool)
    SnapshotFactory.create(template=pool.template)
    pool.delete()

    sweep_pools(timestamp=0)

    got.refresh_from_db()
    assert (got.state, got.is_warm) == (READY, True)


def test_one_that_is_claimed_meanwhile_is_not_retired(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep has looked, then somebody claims, then the sweep retires."""
    from provisioner.pools import sweeps as pool_sweeps

    filled(pool)
    Pool.objects.update(size=2)
    got: list[Workspace] = []

    def claimed_first(member: Workspace) -> Workspace:
        if not got:
            got.append(claim(pool))
        return locked(member)

    monkeypatch.setattr(pool_sweeps, "locked", claimed_first)
    sweep_pools(timestamp=0)

    got[0].refresh_from_db()
    assert got[0].state == READY


def test_an_idle_pool_shrinks_by_halves(pool: Pool) -> None:
    Pool.objects.update(size=8, idle_seconds=3600, max_age_seconds=10**6)
    now = timezone.now()

    def wanted(hours: float) -> int:
        pool.refresh_from_db()
        at = now + dt.timedelta(hours=hours, minutes=1)
        return pool_queries.wanted_size(pool, last_asked_at=now, now=at)

    assert [wanted(hours) for hours in (0, 0.9, 1, 2, 3, 4, 1000)] == [
        *(8, 8, 4, 2, 1, 0, 0)
    ]
    filled(pool)
    later(pool, 2 * 3600 + 60)
    sweep_pools(timestamp=0)
    sweep_pools(timestamp=0)
    assert len(members(pool, READY)) == 2
    got = [claim(pool) for _ in range(3)]
    assert [each.cold_reason for each in got] == ["", "", "pool_empty"]
    assert pool_queries.overviews_of([pool])[0].wanted == 8


def test_a_schedule_decides_how_many(pool: Pool) -> None:
    Pool.objects.update(windows=["mon-sun 00:00-24:00 1"], size=9)
    pool.refresh_from_db()

    assert len(filled(pool)) == 1


# --- failures


def test_failed_members_go_and_the_pool_pauses(pool: Pool) -> None:
    sweep_pools(timestamp=0)
    failed = [fail(member) for member in members(pool)]

    sweep_pools(timestamp=0)

    assert {member.pk for member in members(pool, W.RETIRING)} == {
        member.pk for member in failed
    }
    pool.refresh_from_db()
    assert pool.failures == 1
    assert "Retrying after a pause" in pool.status_message
    sweep_pools(timestamp=0)
    assert members(pool, W.PROVISIONING) == []
    for member in members(pool):
        engine_states.end_operation(
            member.operations.get(state=Operation.State.RUNNING),
            Operation.State.SUCCEEDED,
        )
        purge(member)
    later(pool, 61)
    sweep_pools(timestamp=0)
    [first, *_] = members(pool, W.PROVISIONING)
    fail(first)
    sweep_pools(timestamp=0)
    pool.refresh_from_db()
    assert pool.failures == 2
    assert pool.retry_at is not None
    assert pool.retry_at - timezone.now() > dt.timedelta(seconds=90)
    finish(members(pool, W.PROVISIONING)[0])
    sweep_pools(timestamp=0)
    assert Pool.objects.filter(pk=pool.pk, failures=0, retry_at=None).exists()


def test_what_cannot_be_retired_stops_the_filling(pool: Pool) -> None:
    sweep_pools(timestamp=0)
    for member in members(pool):
        fail(member)
    sweep_pools(timestamp=0)
    for member in members(pool):
        fail(member)  # its retirement
    later(pool, 120)

    sweep_pools(timestamp=0)

    assert len(members(pool, W.FAILED)) == len(members(pool)) == 3
    pool.refresh_from_db()
    assert "could not be removed" in pool.status_message
    later(pool, 3600)
    sweep_pools(timestamp=0)
    assert len(members(pool, W.RETIRING)) == 3


def test_a_failed_member_is_never_handed_out(pool: Pool) -> None:
    sweep_pools(timestamp=0)
    for member in members(pool):
        fail(member)

    assert claim(pool).cold_reason == "pool_empty"


# --- settings


def test_pools_are_for_administrators(pool: Pool, alice: User) -> None:
    for attempt in (
        lambda: pool_create(
            by=alice, template=pool.template, purpose="ci", owner=alice, size=1
        ),
        lambda: pool_update(by=alice, pool=pool, size=1),
        lambda: pool_delete(by=alice, pool=pool),
    ):
        with pytest.raises(NotAllowed):
            attempt()


def test_what_makes_no_sense_is_refused(
    pool: Pool, template: Template, admin: User
) -> None:
    def create(**changes: Any) -> None:
        asked = {"template": template, "purpose": "build", "owner": pool.owner}
        pool_create(by=admin, **{**asked, "size": 1, **changes})

    for wrong in (
        {"purpose": "other"},
        {"size": 1001},
        {"size": -1},
        {"windows": ["mon 07:00-19:00 1001"]},
        {"windows": ["always 3"]},
        {"windows": ["mon 07:00-19:00 1"] * 51},
        {"max_age_seconds": 299},
        {"idle_seconds": 10**12},
    ):
        with pytest.raises(InvalidRequest):
            create(**wrong)
    with pytest.raises(AccountIncomplete):
        create(owner=UserFactory.create(uid=None, gid=None))
    with pytest.raises(AccountNotActive):
        create(owner=UserFactory.create(is_active=False))
    with pytest.raises(PoolExists):
        create(purpose="ci")
    assert Pool.objects.get() == pool


def test_changes_enter_the_audit_log(pool: Pool, admin: User) -> None:
    pool_update(by=admin, pool=pool, size=7, windows=["MON 07:00-19:00  5"])
    pool.refresh_from_db()
    assert (pool.size, pool.windows) == (7, ["mon 07:00-19:00 5"])
    pool_delete(by=admin, pool=pool)

    told = Event.objects.filter(subject_kind="pool").order_by("pk")
    assert [event.kind for event in told] == [
        *("pool_made", "pool_changed", "pool_deleted")
    ]
    assert told[1].data["size"] == {"before": 3, "after": 7}
    assert told[1].subject == str(pool)


def test_figures_say_what_it_costs_and_saves(pool: Pool) -> None:
    filled(pool)
    Workspace.objects.filter(pk=members(pool)[0].pk).update(unique_bytes=2**20)
    got = [claim(pool) for _ in range(2)]
    Workspace.objects.filter(pk=members(pool)[0].pk).update(unique_bytes=2**30)
    claim(pool, wants_reconcile=True)

    [figures] = pool_queries.overviews_of([pool])

    assert (figures.ready, figures.warm, figures.cold) == (1, 2, 1)
    assert figures.unique_bytes == 2**30
    assert figures.unmeasured == 0
    assert figures.seconds_saved == sum(each.seconds_saved or 0 for each in got) > 0
    assert figures.last_asked_at is not None


# --- on the lab


def test_a_pool_on_the_lab_from_its_filling_to_its_end(
    published_template: Template, run_jobs: Callable[[], None]
) -> None:
    ci = UserFactory.create(username="ci", uid=20007, gid=20000, is_service=True)
    pool = make_pool(published_template, ci, size=2, purpose="ci-edit")
    perforce = registry.perforce(pool.template.site.perforce_server)
    ontap = registry.ontap(pool.template.site)
    sweep_pools(timestamp=0)
    run_jobs()
    lying = members(pool, READY)
    assert len(lying) == 2, [member.status_message for member in members(pool)]

    got = claim(pool, name="job-7")

    assert got.pk == lying[0].pk
    assert (got.path / "Makefile").stat().st_uid == ci.uid
    assert f"P4CLIENT={got.client_name}" in (got.path / ".p4config").read_text()
    assert got.seconds_saved is not None
    assert got.seconds_saved > 0
    operation = workspace_retire(by=ci, workspace=got, purge=True)
    Pool.objects.update(size=0)
    sweep_pools(timestamp=0)
    run_jobs()
    operation.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    for workspace in lying:
        workspace.refresh_from_db()
        assert workspace.state == W.RETIRED
        assert ontap.find_volume(workspace.volume_name) is None
        assert perforce.clients.find(workspace.client_name) is None
