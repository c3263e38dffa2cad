"""When templates are due: the decision alone, without rows or clocks."""

from __future__ import annotations

import datetime as dt
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.catalog.models import RefreshPolicy
from provisioner.catalog.refresh_policy import (
    QUIET_PERIODS,
    State,
    clean_due,
    due,
)
from provisioner.gateways.perforce.depot_view import DepotView
from provisioner.lib.schedules import is_schedule, last_time

Mode = RefreshPolicy.Mode
NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


def ago(seconds: float) -> dt.datetime:
    return NOON - dt.timedelta(seconds=seconds)


def behind(*, first: float = 300, last: float = 300, **known: object) -> State:
    """Return the state of a template that has been behind for so many seconds."""
    return State(
        newest=110,
        behind_since=ago(first),
        newest_at=ago(last),
        **known,  # type: ignore[arg-type]
    )


ON_CHANGE = RefreshPolicy(mode=Mode.ON_CHANGE, quiet_seconds=60, every_seconds=600)
NIGHTLY = RefreshPolicy(mode=Mode.CRON, cron="0 3 * * *")


def test_it_is_due_once_it_is_quiet() -> None:
    assert due(NOON, ON_CHANGE, behind(last=59)) is None
    assert due(NOON, ON_CHANGE, behind(last=60)) == "Change 110 was submitted."


def test_without_quiet_it_is_due_after_some_quiet_periods() -> None:
    long = 60 * QUIET_PERIODS
    assert due(NOON, ON_CHANGE, behind(first=long - 1, last=1)) is None
    assert "quiet" in (due(NOON, ON_CHANGE, behind(first=long, last=1)) or "")


def test_it_is_not_due_again_so_soon() -> None:
    assert due(NOON, ON_CHANGE, behind(tried=100, tried_at=ago(599))) is None
    assert due(NOON, ON_CHANGE, behind(tried=100, tried_at=ago(600)))


def test_a_change_that_was_tried_is_not_tried_again() -> None:
    assert due(NOON, ON_CHANGE, behind(tried=110, tried_at=ago(9999))) is None
    assert due(NOON, ON_CHANGE, behind(tried=109, tried_at=ago(9999)))


def test_a_schedule_counts_what_came_before_its_time() -> None:
    nine_hours = 9 * 3600
    assert due(NOON, NIGHTLY, behind(first=nine_hours + 1))
    assert due(NOON, NIGHTLY, behind(first=nine_hours - 1)) is None, "tomorrow"


def test_a_schedule_is_served_once() -> None:
    came = behind(first=86400, tried=100, tried_at=ago(8 * 3600))
    assert due(NOON, NIGHTLY, came) is None
    assert due(NOON + dt.timedelta(hours=15), NIGHTLY, came)


def test_a_new_schedule_does_not_reach_back() -> None:
    changed = RefreshPolicy(mode=Mode.CRON, cron="0 3 * * *", changed_at=ago(3600))
    assert due(NOON, changed, behind(first=86400)) is None


def test_it_rests_while_nobody_uses_it() -> None:
    policy = RefreshPolicy(mode=Mode.ON_CHANGE, unused_days=7)
    day = 86400
    assert due(NOON, policy, behind(used_at=ago(7 * day)))
    assert due(NOON, policy, behind(used_at=ago(7 * day + 1))) is None
    assert due(NOON, policy, behind(used_at=None)) is None


CLEAN = {"clean_cron": "0 3 * * *", "unused_days": 7, "changed_at": ago(86400)}
NINE_HOURS_AGO, EIGHT_HOURS_AGO = ago(9 * 3600), ago(8 * 3600)


@pytest.mark.parametrize(
    ("policy", "known", "is_due"),
    [
        ({}, {}, True),
        ({}, {"clean_tried_at": ago(9 * 3600 + 1)}, True),
        ({}, {"clean_tried_at": NINE_HOURS_AGO}, False),
        ({}, {"tried": 110, "tried_at": EIGHT_HOURS_AGO}, True),
        ({"changed_at": EIGHT_HOURS_AGO}, {}, False),
        ({"clean_cron": ""}, {}, False),
        ({"is_paused": True}, {}, False),
        ({}, {"is_paused_elsewhere": True}, False),
        ({}, {"is_building": True}, False),
        ({}, {"used_at": ago(7 * 86400 + 1)}, False),
    ],
)
def test_a_clean_build_is_due_once_for_each_time_whatever_came(
    policy: dict[str, object], known: dict[str, object], is_due: bool
) -> None:
    reason = clean_due(
        NOON,
        RefreshPolicy(**{**CLEAN, **policy}),
        State(**{"used_at": ago(60), **known}),  # type: ignore[arg-type]
    )
    assert (reason is not None) == is_due


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 3 * * *", True),
        ("*/5 * * * mon-fri", True),
        ("0 0 29 2 *", True),
        ("", False),
        ("* * * *", False),
        ("* * * * * *", False),
        ("60 * * * *", False),
        ("0 0 31 2 *", False),
        ("R R * * *", False),
        ("H H * * *", False),
        ("@daily", False),
    ],
)
def test_schedules_have_five_fields_and_come(text: str, expected: bool) -> None:
    assert is_schedule(text) is expected


times = st.integers(0, 40 * 86400).map(ago)
policies = st.builds(
    RefreshPolicy,
    mode=st.sampled_from(Mode),
    quiet_seconds=st.integers(0, 7200),
    every_seconds=st.integers(0, 7200),
    cron=st.sampled_from(["0 3 * * *", "*/10 * * * *", "0 0 1 * *"]),
    unused_days=st.none() | st.integers(1, 30),
    is_paused=st.booleans(),
    changed_at=st.none() | times,
)
states = st.builds(
    lambda seen, **known: State(
        behind_since=min(seen) if seen else None,
        newest_at=max(seen) if seen else None,
        newest=110 if seen else None,
        **known,
    ),
    seen=st.just(()) | st.tuples(times, times),
    is_building=st.booleans(),
    tried=st.sampled_from([0, 100, 110]),
    tried_at=st.none() | times,
    used_at=st.none() | times,
    is_paused_elsewhere=st.booleans(),
)


@given(policies, states)
def test_nothing_is_due_without_a_reason(policy: RefreshPolicy, state: State) -> None:
    if due(NOON, policy, state) is None:
        return
    assert policy.mode != Mode.MANUAL
    assert not policy.is_paused
    assert not state.is_paused_elsewhere
    assert not state.is_building
    assert state.newest is not None
    assert state.behind_since is not None
    if policy.unused_days is not None:
        assert state.used_at is not None
        assert NOON - state.used_at <= dt.timedelta(days=policy.unused_days)
    if policy.mode == Mode.ON_CHANGE:
        assert state.newest > state.tried
        every = dt.timedelta(seconds=policy.every_seconds)
        assert state.tried_at is None or NOON - state.tried_at >= every
        assert NOON - state.behind_since >= dt.timedelta(seconds=policy.quiet_seconds)


@given(policies, states)
def test_once_tried_nothing_is_due_at_once(policy: RefreshPolicy, state: State) -> None:
    if due(NOON, policy, state) is None:
        return
    assert state.newest is not None
    after = State(
        newest=state.newest,
        behind_since=state.behind_since,
        newest_at=state.newest_at,
        used_at=NOON,
        tried=state.newest,
        tried_at=NOON,
    )
    assert due(NOON, policy, after) is None


@given(policies, states)
def test_whatever_waits_becomes_due(policy: RefreshPolicy, state: State) -> None:
    """Nothing starves: left alone, who is behind and may be refreshed is, in time."""
    if (
        policy.mode == Mode.MANUAL
        or policy.is_paused
        or state.is_paused_elsewhere
        or state.is_building
        or state.newest is None
        or (policy.mode == Mode.ON_CHANGE and state.newest <= state.tried)
        or policy.unused_days is not None
    ):
        return
    assert due(NOON + dt.timedelta(days=32), policy, state)


@given(st.sampled_from(["0 3 * * *", "*/7 * * * *", "30 1 * * sun"]), times)
def test_the_last_time_is_the_last(cron: str, now: dt.datetime) -> None:
    at = last_time(cron, now=now)
    assert at is not None
    assert at <= now
    step = dt.timedelta(minutes=1)
    moment = at + step
    while moment <= now:
        assert last_time(cron, now=moment) == at
        moment += step * 997


# --- views


def test_a_view_touches_what_the_server_would_sync() -> None:
    view = (
        "//depot/main/... //t/...",
        "-//depot/main/doc/... //t/doc/...",
        '"//depot/with space/..." "//t/with space/..."',
        "+//depot/lib/%%1/api.h //t/api/%%1.h",
    )
    assert DepotView(view).touches(["//depot/other/x", "//depot/main/src/a.c"])
    assert DepotView(view).touches(["//depot/with space/x"])
    assert DepotView(view).touches(["//depot/lib/json/api.h"])
    assert not DepotView(view).touches(["//depot/main/doc/index.html"])
    assert not DepotView(view).touches(["//depot/mainly/a", "//depot/lib/json/impl.c"])
    assert not DepotView(view).touches([])


def test_case_counts_as_it_does_for_the_server() -> None:
    view = ("//depot/Main/... //t/...",)
    assert not DepotView(view).touches(["//depot/main/a"])
    assert DepotView(view, is_case_sensitive=False).touches(["//DEPOT/main/a"])


def test_names_that_are_no_utf_8_are_mapped_too() -> None:
    """Handed over as they are, they crash the process."""
    assert DepotView(("//depot/main/... //t/...",)).touches(["//depot/main/\udcff.txt"])


# --- a replay


def test_ten_thousand_changes_over_thirty_views_need_the_fewest_refreshes() -> None:
    """The fewest: one for each run of relevant changes that no quiet period parts.

    Counted here from the changes alone, without the decision that is checked.
    """
    chance = random.Random(20261121)
    views = [
        DepotView((f"//depot/p{n}/... //t/...", f"-//depot/p{n}/doc/... //t/doc/..."))
        for n in range(30)
    ]
    quiet = 3600
    policy = RefreshPolicy(mode=Mode.ON_CHANGE, quiet_seconds=quiet, every_seconds=0)
    now = 0
    changes: list[tuple[int, int, tuple[str, ...]]] = []
    for number in range(1, 10_001):
        now += chance.choice((1, 5, 20, 90, 400))
        folder = f"//depot/p{chance.randrange(40)}"
        part = chance.choice(("src", "doc"))
        changes.append((number, now, (f"{folder}/{part}/f{number}",)))

    refreshes = [_replay(changes, view, policy=policy) for view in views]

    for n, built in enumerate(refreshes):
        relevant = [
            (number, at)
            for number, at, [path] in changes
            if path.startswith(f"//depot/p{n}/src/")
        ]
        last_of_runs = [
            number
            for (number, at), following in zip(
                relevant, [*relevant[1:], (0, 10**9)], strict=True
            )
            if following[1] - at >= quiet
        ]
        assert built == last_of_runs
        assert 0 < len(built) < len(relevant), "some came together"


def _replay(
    changes: list[tuple[int, int, tuple[str, ...]]],
    view: DepotView,
    *,
    policy: RefreshPolicy,
) -> list[int]:
    """Return at which changes a template is built, looked at whenever it may be due."""
    start = NOON
    built: list[int] = []
    state = State()
    relevant = [(n, at) for n, at, paths in changes if view.touches(paths)]
    quiet = dt.timedelta(seconds=policy.quiet_seconds)
    for index, (number, at) in enumerate(relevant):
        seen = start + dt.timedelta(seconds=at)
        state = State(
            newest=number,
            newest_at=seen,
            behind_since=state.behind_since or seen,
            tried=state.tried,
            tried_at=state.tried_at,
        )
        following = relevant[index + 1][1] if index + 1 < len(relevant) else 10**8
        look = min(seen + quiet, start + dt.timedelta(seconds=following))
        for moment in (seen, look):
            if due(moment, policy, state):
                built.append(number)
                state = State(tried=number, tried_at=moment)
    return built
