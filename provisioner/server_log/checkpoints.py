"""When checkpoints ran: from the log, and as seen while they ran."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from provisioner.server_log.models import LogCommand, SeenCheckpoint
from provisioner.server_log.periods import Period

# Readings come every 15 seconds, as long as something of ours runs there.
_SAME_WITHIN = dt.timedelta(minutes=2)
# They lock all tables while they run. Source: p4 help admin.
_LOCKS_EVERYTHING = r"^(-\S+ +)*(checkpoint|dump|journal)( |$)"


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A time in which all tables were locked; `command_id` if the log has it."""

    server: str
    began: dt.datetime
    ended: dt.datetime
    what: str
    command_id: int | None


def record_seen_checkpoint(server_id: int, *, what: str, now: dt.datetime) -> None:
    """Note that a command which locks all tables runs now. Safe to repeat."""
    lately = SeenCheckpoint.objects.filter(
        server_id=server_id, seen_at__gte=now - _SAME_WITHIN
    )
    if not lately.update(seen_at=now, what=what):
        SeenCheckpoint.objects.create(
            server_id=server_id, began_at=now, seen_at=now, what=what
        )


def checkpoints(*, period: Period, server: str = "") -> list[Checkpoint]:
    """Return those that ran in a time, oldest first, also one that was only seen."""
    logged = LogCommand.objects.select_related("log__server").filter(
        command="user-admin",
        arguments__regex=_LOCKS_EVERYTHING,
        started_at__gte=period.begin,
        started_at__lt=period.end,
    )
    seen = SeenCheckpoint.objects.select_related("server").filter(
        seen_at__gte=period.begin, began_at__lt=period.end
    )
    if server:
        logged = logged.filter(log__server__name=server)
        seen = seen.filter(server__name=server)
    found = [
        Checkpoint(
            server=each.log.server.name,
            began=each.started_at,
            ended=each.started_at + dt.timedelta(milliseconds=each.lapse_ms),
            what=f"admin {each.arguments} of {each.user}",
            command_id=each.pk,
        )
        for each in logged
    ]
    known = list(found)
    found += [
        Checkpoint(
            server=each.server.name,
            began=each.began_at,
            ended=each.seen_at,
            what=each.what,
            command_id=None,
        )
        for each in seen
        if not any(_is_same(each, one) for one in known)
    ]
    return sorted(found, key=lambda each: (each.began, each.server))


def _is_same(seen: SeenCheckpoint, logged: Checkpoint) -> bool:
    return (
        seen.server.name == logged.server
        and seen.began_at <= logged.ended + _SAME_WITHIN
        and logged.began <= seen.seen_at
    )
