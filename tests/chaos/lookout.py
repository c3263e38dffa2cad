"""Waiting for moments of workspaces: one check serves all who wait.

Many wait at a time, each for the very moment in which a step begins. Were each to ask
for itself as often as that takes, the machine would be busy with little else.
"""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from django.db import Error as DatabaseError
from django.db import connection
from django.db.models import Exists, OuterRef, Q, QuerySet

from provisioner.engine.models import Step
from provisioner.workspaces.models import MOVING, Workspace
from tests.chaos.judge import IN_FLIGHT
from tests.chaos.patience import from_database

POLL_EVERY_SECONDS = 0.03


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A step of an operation after `later_than` has begun, or with `is_done` ended."""

    workspace_id: int
    step: str
    is_done: bool
    later_than: int

    @property
    def query(self) -> Q:
        came = Q(ended_at__isnull=False) if self.is_done else Q(attempt__gt=0)
        return came & Q(
            operation__subject__workspace=self.workspace_id,
            operation_id__gt=self.later_than,
            name=self.step,
        )


class _Wait:
    """One who waits. `has_come` is set by the lookout."""

    def __init__(self, workspace_id: int, moment: Moment | None) -> None:
        self.workspace_id = workspace_id
        self.moment = moment
        self.has_come = threading.Event()


class Lookout:
    """A thread that looks for all; it ends with the process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waits: list[_Wait] = []
        threading.Thread(target=self._look_on, daemon=True).start()

    def wait_for_moment(self, moment: Moment, *, seconds: float) -> bool:
        """Wait until the moment comes or the workspace stands still; say if in time."""
        return self._wait(_Wait(moment.workspace_id, moment), seconds=seconds)

    def wait_until_settled(self, workspace_id: int, *, seconds: float) -> bool:
        """Wait until nothing of a workspace moves; say whether that was in time."""
        return self._wait(_Wait(workspace_id, None), seconds=seconds)

    def _wait(self, wait: _Wait, *, seconds: float) -> bool:
        with self._changed:
            self._waits.append(wait)
            self._changed.notify()
        came = wait.has_come.wait(seconds)
        with self._changed:
            self._waits.remove(wait)
        return came

    def _look_on(self) -> None:
        look: _Check | None = None
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._waits))
                if look is None or look.waits != self._waits:
                    look = _Check(list(self._waits))
            # They have an end to their patience; who looks for them has none.
            with contextlib.suppress(DatabaseError):
                for wait in from_database(look.who_may_go_on):
                    wait.has_come.set()
            time.sleep(POLL_EVERY_SECONDS)


Statement = tuple[str, tuple[Any, ...]]


class _Check:
    """Asks for all waits in two statements at most, composed once for many looks."""

    def __init__(self, waits: list[_Wait]) -> None:
        self.waits = waits
        in_flight = Step.objects.filter(
            operation__subject__workspace=OuterRef("pk"), state__in=IN_FLIGHT
        )
        self._workspaces = _composed(
            Workspace.objects.filter(pk__in={wait.workspace_id for wait in waits})
            .annotate(is_at_work=Exists(in_flight))
            .order_by()
            .values_list("pk", "state", "is_at_work")
        )
        moments = [wait.moment.query for wait in waits if wait.moment is not None]
        self._moments: Statement | None = None
        if moments:
            self._moments = _composed(
                Step.objects.filter(reduce(or_, moments))
                .order_by()
                .values_list("operation__subject__workspace", "name")
            )

    def who_may_go_on(self) -> list[_Wait]:
        """Return those whose moment has come, or whose workspace stands still."""
        rows = _rows(self._workspaces)
        moving = {pk for pk, state, _ in rows if state in MOVING}
        at_work = {pk for pk, _, is_at_work in rows if is_at_work}
        come = set(_rows(self._moments)) if self._moments else set()

        def may_go_on(wait: _Wait) -> bool:
            if wait.moment is None:
                return wait.workspace_id not in moving | at_work
            has_come = (wait.workspace_id, wait.moment.step) in come
            return has_come or wait.workspace_id not in moving | at_work

        return [wait for wait in self.waits if may_go_on(wait)]


def _composed(rows: QuerySet[Any, Any]) -> Statement:
    statement: Statement = rows.query.sql_with_params()
    return statement


def _rows(statement: Statement) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(*statement)
        return list(cursor)
