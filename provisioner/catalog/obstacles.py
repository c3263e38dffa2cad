"""Obstacles to a workspace of a template, reported by features above."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from provisioner.accounts.models import User
from provisioner.catalog.events import asks_obstacles
from provisioner.catalog.models import Snapshot
from provisioner.sites.models import Site


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """Why a request is refused, or has to wait; `button` says it in a few words.

    `is_pause`: its Perforce server is paused.
    """

    sentence: str
    button: str
    refuses: bool = False
    is_pause: bool = False


def known_obstacles(
    by: User,
    snapshots: Collection[Snapshot],
    *,
    sites: Mapping[int, Site] | None = None,
) -> dict[int, Obstacle]:
    """Return the obstacle to a person's workspace of each snapshot, by snapshot id.

    Snapshots without an obstacle are left out. The snapshots have their templates
    loaded. `sites` are where it is cloned, by snapshot id, if not at the template's;
    None: they are looked up.
    """
    if by.uid is None or not snapshots:
        return {}
    found: dict[int, Obstacle] = {}
    answers: Any = asks_obstacles.send(
        Snapshot, by=by, snapshots=snapshots, sites=sites
    )
    for _, known in answers:
        found.update(known)
    return found
