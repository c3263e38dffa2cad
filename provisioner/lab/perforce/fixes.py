"""Jobs and the changes that fix them.

A fix says which status a job gets once its change is submitted.

Source: p4 help job, fix, fixes, submit.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.specstore import StoredSpec, find_spec

CLOSED = "closed"
STATUSES = ("open", "suspended", CLOSED)
# The status of a fix that leaves the job as it is.
SAME = "same"


class Fix(NamedTuple):
    """A job and a change that fixes it; `status` is the job's new status."""

    job: str
    change: int
    time: int
    user: str
    client: str
    status: str


def get_job(database: Database, *, name: str) -> StoredSpec:
    """Return a job.

    Raises: CommandError.
    """
    job = find_spec(database, kind="job", name=name)
    if job is None:
        raise CommandError(6182, job=name)
    return job


def check_status(status: str) -> None:
    """Refuse a status that no fix can give a job.

    Raises: CommandError.
    """
    if status not in (*STATUSES, SAME):
        raise CommandError(6232, values="/".join((*STATUSES, SAME)))


def fixes_of(
    database: Database, *, job: str | None = None, change: int | None = None
) -> list[Fix]:
    """Return fixes, of a job or a change if given, ordered by both."""
    rows = database.rows(
        "SELECT job, change, time, user, client, status FROM fixes"
        " WHERE job=coalesce(?, job) AND change=coalesce(?, change)"
        " ORDER BY job, change",
        *(job, change),
    )
    return [Fix._make(row) for row in rows]


def put_fix(request: Request, *, job: str, change: int, status: str) -> None:
    """Record that a change fixes a job; only inside `writing`."""
    database = request.state.database
    database.execute(
        "INSERT OR REPLACE INTO fixes VALUES (?,?,?,?,?,?)",
        *(job, change, int(time.time()), request.user, request.client_name, status),
    )
    row = database.execute(
        "SELECT 1 FROM changes WHERE change=? AND status='submitted'", change
    ).fetchone()
    if row:
        _settle(database, job=job, status=status)


def change_fixes(request: Request, change: int, names: list[str]) -> tuple[int, int]:
    """Make a change fix exactly these jobs; return how many were added and removed.

    Only inside `writing`.

    Raises: CommandError for a missing job.
    """
    database = request.state.database
    known = {fix.job for fix in fixes_of(database, change=change)}
    wanted = [get_job(database, name=name).name for name in names]
    added = [name for name in wanted if name not in known]
    for name in added:
        put_fix(request, job=name, change=change, status=CLOSED)
    removed = known - set(wanted)
    for name in removed:
        drop_fix(database, job=name, change=change)
    return len(added), len(removed)


def drop_fix(database: Database, *, job: str, change: int) -> bool:
    """Delete a fix; return whether there was one."""
    return bool(
        database.execute(
            "DELETE FROM fixes WHERE job=? AND change=?", job, change
        ).rowcount
    )


def settle_fixed(
    database: Database, *, change: int, final: int, status: str = ""
) -> None:
    """Give the jobs of a newly submitted change their status.

    Only inside `writing`.
    """
    database.execute("UPDATE fixes SET change=? WHERE change=?", final, change)
    if status:
        database.execute("UPDATE fixes SET status=? WHERE change=?", status, final)
    for fix in fixes_of(database, change=final):
        _settle(database, job=fix.job, status=fix.status)


def _settle(database: Database, *, job: str, status: str) -> None:
    if status != SAME:
        database.execute(
            "UPDATE specs SET fields=json_set(fields, '$.Status', ?)"
            " WHERE kind='job' AND name=?",
            *(status, job),
        )
