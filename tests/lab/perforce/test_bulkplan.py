"""A flush planned by the database equals one planned file by file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.lab.perforce import paths
from provisioner.lab.perforce.clients import Client, client_of
from provisioner.lab.perforce.commands.bulkplan import Noted, bulk_plan
from provisioner.lab.perforce.commands.syncplan import Plan, Step
from provisioner.lab.perforce.filespec import FileSet, Point
from provisioner.lab.perforce.locks import TableLocks
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specs import Fields
from provisioner.lab.perforce.specstore import StoredSpec
from provisioner.lab.perforce.state import (
    PerforceConfig,
    ServerState,
    initialize,
    open_state,
)
from tests.lab.perforce.properties import patient

NAMES = ["a/f", "a/g%40", "a/sub/h", "b/f", "b/ü", "c"]
VIEWS = [
    ["//depot/... //ws/..."],
    ["//depot/a/... //ws/a/...", "//depot/b/... //ws/elsewhere/..."],
    ["//depot/... //ws/all/...", "-//depot/a/sub/... //ws/all/a/sub/..."],
    ["//depot/a/%%1/h //ws/%%1/h"],
]
PATTERNS = ["", "//depot/...", "//depot/a/...", "//ws/a/...", "//ws/elsewhere/..."]
POINTS = [
    Point(kind="head"),
    Point(kind="none"),
    Point(kind="change", number=2),
    Point(kind="client", name="other"),
]


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerState]:
    root = tmp_path_factory.mktemp("bulkplan")
    config = PerforceConfig(root=root)
    initialize(config)
    state = open_state(config)
    yield state
    state.database.close()


def client(view: list[str]) -> Client:
    fields: Fields = {"Root": "/ws", "Owner": "cloneyard"}
    spec = StoredSpec(kind="client", name="ws", fields=fields, updated=0, accessed=0)
    return client_of(spec, view=view)


def request(state: ServerState, options: dict[str, str]) -> Request:
    asked: dict[str, Any] = dict.fromkeys(
        ("connection", "message", "authenticate"), cast(Any, None)
    )
    return Request(
        **asked,
        command="flush",
        args=[],
        options=options,
        state=state,
        server_address="",
        peer_address="",
        certificate_expires="",
        wants_definitions=False,
        locks=TableLocks(state.config.root),
        phase=lambda name: nullcontext(),
    )


# Actions of the revisions of each file; what two clients have of it, and where.
histories = st.tuples(
    st.lists(st.sampled_from(["edit", "delete"]), min_size=1, max_size=3),
    st.integers(0, 3),
    st.sampled_from(["//ws/", "//ws/all/", "//ws/elsewhere/"]),
    st.integers(0, 3),
)


def fill(state: ServerState, files: dict[str, Any]) -> None:
    database = state.database
    with database.writing():
        for table in ("revisions", "have"):
            database.execute(f"DELETE FROM {table}")  # noqa: S608 - one of the two
        for name, (actions, had, place, others) in files.items():
            path = f"//depot/{name}"
            for number, action in enumerate(actions, start=1):
                row = (path, number, number, action, "text", number, number, "D", 7)
                database.execute(
                    "INSERT INTO revisions VALUES (?,?,?,?,?,?,?,?,?)", *row
                )
            for holder, where, number in (
                ("ws", place + name, min(had, len(actions))),
                ("other", f"//other/{name}", min(others, len(actions))),
            ):
                if number:
                    line = (holder, path, where, number, 1)
                    database.execute("INSERT INTO have VALUES (?,?,?,?,?)", *line)


def by_file(steps: list[Noted]) -> list[Noted]:
    """Return steps in an order of their own; deletions stay first."""
    return sorted(steps, key=lambda step: (step[0] != "deleted", step[1:3]))


def sent(step: Step) -> tuple[object, ...]:
    """Return what of a step matters to who sends the files."""
    revision = step.revision
    content = revision and (
        *(revision.path, revision.revision, revision.change, revision.type),
        *(revision.modified, revision.digest, revision.size),
    )
    return (step.action, step.path, step.client_path, step.number, content or ())


@settings(patient, max_examples=60)
@given(
    st.dictionaries(st.sampled_from(NAMES), histories),
    st.sampled_from(VIEWS),
    st.sampled_from(PATTERNS),
    st.sampled_from(POINTS),
    st.booleans(),
)
def test_the_database_plans_what_the_careful_way_plans(
    state: ServerState,
    files: dict[str, Any],
    view: list[str],
    pattern: str,
    point: Point,
    is_forced: bool,
) -> None:
    fill(state, files)
    ws = client(view)
    wanted = FileSet(
        typed=pattern,
        pattern=pattern or ws.everything,
        in_client_syntax=pattern in ("", "//ws/a/...", "//ws/elsewhere/..."),
        client=ws if pattern in ("", "//ws/a/...", "//ws/elsewhere/...") else None,
        lower=None,
        upper=point,
        access=None,
    )
    asked = request(state, {"f": ""} if is_forced else {})

    slow = Plan(asked, ws, wanted)
    with state.database.reading():
        sending = bulk_plan(asked, ws, wanted, sends_files=True)
    assert sending is not None
    assert sorted(map(sent, sending.files())) == sorted(map(sent, slow.steps))
    with state.database.reading():
        fast = bulk_plan(asked, ws, wanted)

    assert fast is not None
    expected: list[Noted] = [
        (
            step.action,
            step.path,
            step.client_path,
            step.number,
            None if step.revision is None else step.revision.size,
        )
        for step in slow.steps
    ]
    assert by_file(list(fast.steps())) == by_file(expected)
    assert fast.count == slow.count
    assert (fast.found, fast.has_any) == (slow.found, slow.has_any)
    if not fast.found:
        assert fast.outside_view == slow.outside_view
    assert fast.totals()[0] == 7 * sum(size is not None for *_, size in expected)

    with state.database.writing():
        fast.write()
    again = Plan(request(state, {}), ws, wanted)
    assert again.steps == []


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a_limit_cuts_the_last_steps_off(state: ServerState, limit: int) -> None:
    # Two to lose, three to bring.
    files = {name: (["edit"], 0, "//ws/", 0) for name in ("a/f", "b/f", "c")}
    lost = {name: (["edit", "delete"], 1, "//ws/", 0) for name in ("a/g", "a/h")}
    fill(state, files | lost)
    ws = client(["//depot/... //ws/..."])
    pattern = ws.everything
    wanted = FileSet(
        typed="",
        pattern=pattern,
        in_client_syntax=True,
        client=ws,
        lower=None,
        upper=Point(kind="head"),
        access=None,
    )

    limited = request(state, {"m": str(limit)})
    with state.database.reading():
        plan = bulk_plan(limited, ws, wanted)
    assert plan is not None
    steps = list(plan.steps())

    assert len(steps) == plan.count == limit
    assert [step[0] for step in steps[:2]] == ["deleted"] * min(limit, 2)
    with state.database.writing():
        plan.write()
    assert len(Plan(request(state, {}), ws, wanted).steps) == 5 - limit


@pytest.mark.parametrize("undone", [[], [0], [2], [0, 1, 2, 3, 4], [1, 4]])
def test_what_did_not_happen_is_not_recorded(
    state: ServerState, undone: list[int]
) -> None:
    # Two to lose, three to bring.
    files = {name: (["edit"], 0, "//ws/", 0) for name in ("a/f", "b/f", "c")}
    lost = {name: (["edit", "delete"], 1, "//ws/", 0) for name in ("a/g", "a/h")}
    fill(state, files | lost)
    ws = client(["//depot/... //ws/..."])
    wanted = FileSet(
        typed="",
        pattern=ws.everything,
        in_client_syntax=True,
        client=ws,
        lower=None,
        upper=Point(kind="head"),
        access=None,
    )
    with state.database.reading():
        plan = bulk_plan(request(state, {}), ws, wanted, sends_files=True)
    assert plan is not None
    steps = list(plan.files())

    plan.forget(undone)
    with state.database.writing():
        plan.write()

    left = Plan(request(state, {}), ws, wanted).steps
    assert {step.path for step in left} == {steps[index].path for index in undone}


@pytest.mark.parametrize(
    "change",
    [
        {"pattern": "//ws/*/f"},
        {"upper": Point(kind="number", number=1)},
        {"lower": Point(kind="change", number=1)},
    ],
    ids=str,
)
def test_what_the_database_cannot_plan_is_left(
    state: ServerState, change: dict[str, Any]
) -> None:
    ws = client(["//depot/... //ws/..."])
    wanted = FileSet(
        typed="",
        pattern=ws.everything,
        in_client_syntax=True,
        client=ws,
        lower=None,
        upper=Point(kind="head"),
        access=None,
    )

    assert paths.has_wildcard(wanted.pattern)
    assert bulk_plan(request(state, {}), ws, replace(wanted, **change)) is None
