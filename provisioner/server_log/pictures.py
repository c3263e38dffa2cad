"""Jams drawn: who held a table, and who stood behind it."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from django.utils import timezone

from provisioner.server_log.blocking import Blocked, Culprit, TableUse
from provisioner.server_log.lock_waits import LockWaits

JAMS_DRAWN = 5
LANES_DRAWN = 12
# In units of the drawing.
WIDTH = 1000
NARROWEST = 3


@dataclass(frozen=True, kw_only=True)
class Lane:
    """A command as a bar; `role` is culprit, through or victim."""

    use: TableUse
    role: str
    x: int
    width: int

    @property
    def said(self) -> str:
        """The command in words."""
        use = self.use
        waited = f", waited {use.wait_ms:,} ms" if use.wait_ms else ""
        held = f", held {use.held_ms:,} ms" if use.held_ms else ""
        at = timezone.localtime(use.began)
        return f"{use.command} of {use.user} at {at:%H:%M:%S}{waited}{held}"


@dataclass(frozen=True, kw_only=True)
class Jam:
    """What one command held up, with a drawing; `left_out` waits are not drawn."""

    culprit: Culprit
    lanes: tuple[Lane, ...]
    left_out: int
    width: int = WIDTH


def jams_of(waits: LockWaits) -> list[Jam]:
    """Return what held up most, the worst first."""
    return [_jam(culprit) for culprit in waits.culprits[:JAMS_DRAWN]]


def _jam(culprit: Culprit) -> Jam:
    shown = culprit.blocked[:LANES_DRAWN]
    roles = {culprit.use: "culprit", **dict.fromkeys(_writes(shown), "through")}
    for blocked in shown:
        roles.setdefault(blocked.waiter, "victim")
    victims = [use for use in roles if use != culprit.use]
    began = min(use.began for use in roles)
    ended = max(use.ended for use in victims)
    uses = [culprit.use, *sorted(victims, key=lambda use: use.began)]
    return Jam(
        culprit=culprit,
        lanes=tuple(_lane(use, roles[use], began=began, ended=ended) for use in uses),
        left_out=len(culprit.blocked) - len(shown),
    )


def _writes(shown: Iterable[Blocked]) -> list[TableUse]:
    return [each.through for each in shown if each.through is not None]


def _lane(use: TableUse, role: str, *, began: dt.datetime, ended: dt.datetime) -> Lane:
    whole = max(ended - began, dt.timedelta(milliseconds=1))
    x = round(WIDTH * ((use.began - began) / whole))
    end = round(WIDTH * ((min(use.ended, ended) - began) / whole))
    return Lane(
        use=use,
        role=role,
        x=min(x, WIDTH - NARROWEST),
        width=max(end - x, NARROWEST),
    )
