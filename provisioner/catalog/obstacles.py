"""What stands against a workspace of a template. Features above know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from provisioner.accounts.models import User
from provisioner.catalog.events import asks_obstacles
from provisioner.catalog.models import Template


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """Why a request is refused, or has to wait; `button` says it in a few words."""

    sentence: str
    button: str
    refuses: bool = False


def known_obstacles(by: User, templates: Sequence[Template]) -> dict[int, Obstacle]:
    """Return the obstacle to a person's workspace of each template, by id.

    The templates are as `templates_offered_to` returns them. Those that give no
    workspace at all, and those without an obstacle, are left out.
    """
    asked = [template for template in templates if not template.is_archived]
    if by.uid is None or not asked:
        return {}
    found: dict[int, Obstacle] = {}
    answers: Any = asks_obstacles.send(Template, by=by, templates=asked)
    for _, known in answers:
        found.update(known)
    return found
