"""The comment of a published snapshot, from which its row can be restored.

`cloneyard:v1:template=TAG change=N have=COUNT:DIGEST asked=TIME parts=N`. TIME is when
the build was requested. It distinguishes two builds with the same number, from before
and after an older backup of the database was restored. Parts at other changes are only
counted: ONTAP keeps 255 characters, and paths need more.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass

from django.db import connection

from provisioner.engine.models import Operation

MIRROR_LABEL = "cloneyard"
"""The SnapMirror label of published snapshots, by which mirrors keep them."""

_NAME = re.compile(r"c[0-9]+\.b([0-9]+)")
_COMMENT = re.compile(
    r"(?P<tree>\S+) change=(?P<change>\d+) have=(?P<count>\d+):(?P<digest>[0-9a-f]{64})"
    r" asked=(?P<asked>[0-9T]+)(?: parts=(?P<parts>[0-9]+))?"
)


@dataclass(frozen=True, kw_only=True)
class SnapshotMark:
    """The parsed comment of a snapshot: its template's tag, and what it contains."""

    tree: str
    change: int
    have_count: int
    have_digest: str
    asked: str
    parts: int = 0

    def __str__(self) -> str:
        said = (
            f"{self.tree} change={self.change} "
            f"have={self.have_count}:{self.have_digest} asked={self.asked}"
        )
        return f"{said} parts={self.parts}" if self.parts else said


def mark_of(comment: str) -> SnapshotMark | None:
    """Parse a snapshot's comment; None if it is not ours."""
    match = _COMMENT.fullmatch(comment)
    if match is None:
        return None
    return SnapshotMark(
        tree=match["tree"],
        change=int(match["change"]),
        have_count=int(match["count"]),
        have_digest=match["digest"],
        asked=match["asked"],
        parts=int(match["parts"] or 0),
    )


def asked_text(operation: Operation) -> str:
    """Return when a build was requested, as written into a snapshot's comment."""
    return _as_text(operation.created_at)


def _as_text(moment: dt.datetime) -> str:
    return moment.strftime("%Y%m%dT%H%M%S%f")


def asked_texts(template_ids: list[int]) -> frozenset[tuple[int, str]]:
    """Return template and request time of every build in the database."""
    builds = Operation.objects.filter(subject__template__in=template_ids).order_by()
    return frozenset(
        (template_id, _as_text(created_at))
        for template_id, created_at in builds.values_list(
            "subject__template", "created_at"
        ).iterator()
    )


def build_number_of(name: str) -> int | None:
    """Return the number in a snapshot's name, "c120.b7": 7."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match else None


def go_on_after(names: list[str]) -> None:
    """Number new operations above the highest number in a snapshot's name.

    After an older backup was restored, numbers would repeat, and a build would find a
    snapshot with its name.
    """
    numbers = [n for n in map(build_number_of, names) if n is not None]
    wanted = max([*numbers, 1])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_serial_sequence(%s, 'id')", [Operation._meta.db_table]
        )
        [sequence] = cursor.fetchone()
        cursor.execute("SELECT nextval(%s)", [sequence])
        if cursor.fetchone()[0] < wanted:
            cursor.execute("SELECT setval(%s, %s)", [sequence, wanted])
