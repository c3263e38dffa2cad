"""Decide whether a workspace looks abandoned, from signs of life and their times.

No row is read here: sweeps/activity.py collects the signs. No single sign decides: an
open P4V keeps a client's Access date fresh, and an unchanged tree may still be read.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models import Q

from provisioner.leases import queries
from provisioner.lib import times
from provisioner.workspaces.models import Workspace

DAY = queries.DAY

# What each sign is called where it was seen, and where it never was.
WORDS = {
    "accessed": ("Perforce command", "no Perforce command was ever seen"),
    "submitted": ("submitted change", "nothing was submitted from it"),
    "shelved": ("shelved change", "nothing is shelved from it"),
    "pending": ("pending change", "it has no pending change"),
    "files": ("changed file", "no file was changed since it was created"),
    "touched": ("request of its owner here", "its owner never requested anything"),
}
# Signs that something was done, beside those that it was only named.
WORK = ("submitted", "shelved", "pending", "files", "touched")


@dataclass(frozen=True, kw_only=True)
class Signal:
    """One sign of life: when it was last seen (None: never), in words for people.

    With `is_old` it suggests that the workspace is abandoned.
    """

    kind: str
    at: dt.datetime | None
    is_old: bool
    sentence: str


@dataclass(frozen=True, kw_only=True)
class Abandonment:
    """The signs of life of a workspace at a moment."""

    signals: tuple[Signal, ...]
    idle_since: dt.datetime
    idle_days: int
    sentence: str

    @property
    def reasons(self) -> list[str]:
        """The signs that suggest abandonment, in words."""
        return [signal.sentence for signal in self.signals if signal.is_old]


def abandonment_of(workspace: Workspace, *, now: dt.datetime) -> Abandonment:
    """Judge the signs of life of a workspace that has been ready."""
    began_at, idle_since = workspace.ready_at, workspace.idle_since
    assert began_at is not None
    seen = {kind: _moment(workspace.activity.get(kind)) for kind in WORDS}
    span = dt.timedelta(days=settings.ABANDONED_AFTER_DAYS)
    is_named = idle_since <= now - span < (workspace.used_at or began_at)
    days = (now - idle_since).days
    return Abandonment(
        signals=tuple(
            _signal(workspace, kind, at, began_at=began_at, span=span, now=now)
            for kind, at in seen.items()
            if _applies(workspace, kind)
        )
        + _opened(workspace),
        idle_since=idle_since,
        idle_days=days,
        sentence=_sentence(days, is_named=is_named, workspace=workspace),
    )


def looks_abandoned(*, now: dt.datetime) -> Q:
    """Return the condition for rows that look abandoned, among those that are ready.

    That is, no work for ABANDONED_AFTER_DAYS and no Perforce command either; or no work
    for twice as long, whatever commands name the client.
    """
    span = dt.timedelta(days=settings.ABANDONED_AFTER_DAYS)
    is_unused = Q(used_at__lte=now - span) | Q(used_at__isnull=True)
    # What passes over most rows comes first, and alone: PostgreSQL asks that first.
    return (
        Q(activity_seen_at__isnull=False)
        & Q(idle_since__lte=now - span)
        & (is_unused | Q(idle_since__lte=now - 2 * span))
    )


def newest_of(signs: Mapping[str, Any], kinds: Iterable[str]) -> dt.datetime | None:
    """Return when the newest sign of these kinds was seen; None if none was."""
    return max(filter(None, (_moment(signs.get(kind)) for kind in kinds)), default=None)


def work_seen(workspace: Workspace) -> list[tuple[str, dt.datetime]]:
    """Return what was last done in it, in words, and when: newest first."""
    found = [
        (WORDS[kind][0], at)
        for kind in ("submitted", "shelved", "pending", "files")
        if (at := _moment(workspace.activity.get(kind)))
    ]
    return sorted(found, key=lambda one: one[1], reverse=True)


def _applies(workspace: Workspace, kind: str) -> bool:
    """Return whether a sign could be read: without a client, some cannot."""
    if kind == "files":
        return "files" in workspace.activity
    return bool(workspace.client_name) or kind == "touched"


def _signal(
    workspace: Workspace,
    kind: str,
    at: dt.datetime | None,
    *,
    began_at: dt.datetime,
    span: dt.timedelta,
    now: dt.datetime,
) -> Signal:
    noun, never = WORDS[kind]
    # What is older than the workspace came with the template.
    if at is None or (kind == "files" and at <= began_at):
        sentence, at_shown = never, None
    elif (days := (now - at).days) >= 1:
        sentence, at_shown = f"no {noun} for {_days(days)}", at
    else:
        sentence, at_shown = f"a {noun} {times.age_text(at, now=now)}", at
    detail = (workspace.activity.get(kind) or {}).get("detail", "")
    return Signal(
        kind=kind,
        at=at_shown,
        is_old=now - max(at or began_at, began_at) >= span,
        sentence=f"{sentence} ({detail})" if detail else sentence,
    )


def _opened(workspace: Workspace) -> tuple[Signal, ...]:
    """Return the sign of opened files. They have no time, so they decide nothing."""
    count = (workspace.activity.get("opened") or {}).get("count", 0)
    if not count:
        return ()
    noun = "file is" if count == 1 else "files are"
    return (
        Signal(
            kind="opened",
            at=None,
            is_old=False,
            sentence=f"{count:,} {noun} opened; Perforce does not say since when",
        ),
    )


def _sentence(days: int, *, is_named: bool, workspace: Workspace) -> str:
    if workspace.activity_seen_at is None:
        return "Not checked yet."
    said = f"No work shows for {_days(days)}"
    if is_named:
        said += ", though something still names its client, as a P4V left open does"
    return f"{said}."


def _days(days: int) -> str:
    return "1 day" if days == 1 else f"{days} days"


def _moment(signal: dict[str, Any] | None) -> dt.datetime | None:
    if not signal or not signal.get("at"):
        return None
    return dt.datetime.fromisoformat(signal["at"])
