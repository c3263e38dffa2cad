"""Subjects of operations: any row with a site.

Features register their rows here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from django.db.models import Prefetch, QuerySet, prefetch_related_objects

from provisioner.accounts.models import User
from provisioner.engine.models import Operation, Subject
from provisioner.lib.prepared import Prepared


class Server(Protocol):
    """A Perforce server, as far as slots are concerned."""

    pk: int
    name: str
    flush_limit: int
    maintenance_windows: str


class Site(Protocol):
    """The place of a subject: its queues and its Perforce server."""

    @property
    def host_queue(self) -> str: ...

    @property
    def commands_queue(self) -> str: ...

    @property
    def bisections_queue(self) -> str: ...

    @property
    def perforce_server(self) -> Any: ...


@dataclass(frozen=True)
class Failure:
    """Why an operation failed. `is_refused`: because it found unsubmitted work."""

    code: str
    message: str
    is_refused: bool = False


@dataclass(frozen=True, kw_only=True)
class SubjectKind:
    """Rows that operations can be about.

    `field` is the name of their model in lower case. `rows` is how steps load one, with
    its site and whatever else they need. `visible` returns the ids of the subjects of
    the rows that a person may see, deleted ones included. A row is in one of the states
    `moving` while an operation moves it; `fail` records on such a row why that failed.
    `crumbs` is the template of the links that lead to one. `error_patterns` are what to
    search the logs about a row for, before the usual patterns.
    """

    field: str
    rows: Callable[[], QuerySet[Any]]
    visible: Callable[[User], QuerySet[Any, Any]]
    moving: Collection[str]
    fail: Callable[[Any, Failure], None]
    crumbs: str
    error_patterns: Callable[[Any], tuple[str, ...]] = lambda row: ()


_kinds: dict[str, SubjectKind] = {}
_ROWS: dict[str, Prepared[Any]] = {}


def register(kind: SubjectKind) -> None:
    """Register a kind of row that operations can be about."""
    _kinds[kind.field] = kind


def load_rows(operations: Iterable[Operation]) -> None:
    """Load the rows of operations' subjects for their steps. A query for each kind."""
    of_kinds: dict[str, list[Subject]] = {}
    for operation in operations:
        of_kinds.setdefault(operation.subject.kind, []).append(operation.subject)
    for kind, of_kind in of_kinds.items():
        prefetch_related_objects(of_kind, Prefetch(kind, _kinds[kind].rows()))


def load_row(operation: Operation) -> None:
    """Load the row of one operation's subject for its steps.

    Raises: the model's DoesNotExist.
    """
    subject = operation.subject
    kind = _kinds[subject.kind]
    row = _ROWS.setdefault(
        kind.field,
        Prepared(lambda pk: kind.rows().filter(subject=pk).order_by(), keeps_plan=True),
    ).first(subject.pk)
    if row is None:
        raise Subject.DoesNotExist(f"The {kind.field} of subject {subject.pk} is gone.")
    setattr(subject, kind.field, row)


def paths(*, by: str) -> list[str]:
    """Return what to select through the relation `by` to load operations' subjects."""
    return [f"{by}subject__{kind.field}" for kind in kinds()]


def crumbs_of(operation: Operation) -> str:
    """Return the template of the breadcrumbs to an operation's subject."""
    return _kinds[operation.subject.kind].crumbs


def error_patterns_of(operation: Operation) -> tuple[str, ...]:
    """Return the error patterns of an operation's subject."""
    subject = operation.subject
    return _kinds[subject.kind].error_patterns(subject.row)


def kinds() -> Iterator[SubjectKind]:
    """Yield every kind that a feature has registered."""
    yield from _kinds.values()
