"""Decide when a template is refreshed, from values only."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from provisioner.catalog.models import RefreshPolicy
from provisioner.lib.schedules import last_time

# Where somebody submits all the time there is no quiet: so many quiet periods are
# waited for, then it is built all the same.
QUIET_PERIODS = 10


@dataclass(frozen=True, kw_only=True)
class State:
    """What a refresh decision depends on. Times are by our clock.

    `newest` is the newest relevant change after the default snapshot (None: it is not
    behind), `behind_since` when the first of these was seen, `newest_at` the last.
    `published` is the change of the newest snapshot that is good enough. `tried` is the
    change of the last build, whatever its outcome; `tried_at` its time,
    `clean_tried_at` that of the last clean one.
    """

    newest: int | None = None
    published: int = 0
    behind_since: dt.datetime | None = None
    newest_at: dt.datetime | None = None
    is_building: bool = False
    tried: int = 0
    tried_at: dt.datetime | None = None
    clean_tried_at: dt.datetime | None = None
    used_at: dt.datetime | None = None
    is_paused_elsewhere: bool = False


def due(now: dt.datetime, policy: RefreshPolicy, state: State) -> str | None:
    """Return why the template must be built now; None if it need not be."""
    if policy.is_paused or state.is_paused_elsewhere or state.is_building:
        return None
    if state.newest is None or state.newest_at is None or state.behind_since is None:
        return None
    if state.newest <= state.published or is_unused(now, policy, state):
        return None
    if policy.mode == RefreshPolicy.Mode.ON_CHANGE:
        return _due_on_change(now, policy, state)
    if policy.mode == RefreshPolicy.Mode.CRON:
        return _due_by_cron(now, policy, state)
    return None


def clean_due(now: dt.datetime, policy: RefreshPolicy, state: State) -> str | None:
    """Return why a clean build is due now; None if none is."""
    if policy.is_paused or state.is_paused_elsewhere or state.is_building:
        return None
    if not policy.clean_cron or is_unused(now, policy, state):
        return None
    at = last_time(policy.clean_cron, now=now)
    since = (policy.changed_at, state.clean_tried_at)
    if at is None or any(moment is not None and at <= moment for moment in since):
        return None
    return f"A clean build was due: {policy.clean_cron}."


def is_unused(now: dt.datetime, policy: RefreshPolicy, state: State) -> bool:
    """Return whether the template was unused for so long that refreshes stop."""
    if policy.unused_days is None:
        return False
    idle = dt.timedelta(days=policy.unused_days)
    return state.used_at is None or now - state.used_at > idle


def _due_on_change(now: dt.datetime, policy: RefreshPolicy, state: State) -> str | None:
    """Return why a new change is built. A change is never tried twice."""
    assert state.newest is not None
    assert state.newest_at is not None
    assert state.behind_since is not None
    if state.newest <= state.tried:
        return None
    every = dt.timedelta(seconds=policy.every_seconds)
    if state.tried_at is not None and now < state.tried_at + every:
        return None
    quiet = dt.timedelta(seconds=policy.quiet_seconds)
    if now >= state.newest_at + quiet:
        return f"Change {state.newest} was submitted."
    if state.tried_at is None or state.tried_at <= state.behind_since:
        waits_since = state.behind_since
    else:
        waits_since = state.tried_at
    if now >= waits_since + QUIET_PERIODS * quiet:
        return f"Change {state.newest} was submitted. No quiet period; building anyway."
    return None


def _due_by_cron(now: dt.datetime, policy: RefreshPolicy, state: State) -> str | None:
    assert state.behind_since is not None
    at = last_time(policy.cron, now=now)
    if at is None or at < state.behind_since:
        return None
    if policy.changed_at is not None and at < policy.changed_at:
        return None
    if state.tried_at is not None and at <= state.tried_at:
        return None
    return f"A build was due: {policy.cron}."
