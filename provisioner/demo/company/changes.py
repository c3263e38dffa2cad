"""Changes submitted to the studio's depot in half a year."""

from __future__ import annotations

import datetime as dt
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.demo.company import words
from provisioner.demo.company.plans import Plan
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.trees import paths_of

FIRST_NUMBER = 1_803_000
A_DAY = 38
# It is quiet before a milestone: what follows the depot has everything.
QUIET_HOURS = 3
SECOND_TEMPLATE = 0.12
# What artists work with.
ARTISTS = ("unreal", "python")


@dataclass(frozen=True, kw_only=True)
class Change:
    """A submitted change; `paths` are depot paths, by the template that has them."""

    number: int
    at: dt.datetime
    user: User
    title: str
    paths: dict[str, list[str]]


class History:
    """All changes, oldest first, and those of each template by its name."""

    def __init__(self, changes: Sequence[Change]) -> None:
        self.changes = changes
        self._of: dict[str, list[Change]] = defaultdict(list)
        for change in changes:
            for name in change.paths:
                self._of[name].append(change)
        self._times = {
            name: [change.at for change in found] for name, found in self._of.items()
        }

    @property
    def newest_number(self) -> int:
        return self.changes[-1].number

    def of(self, name: str) -> list[Change]:
        """Return the changes of a template."""
        return self._of[name]

    def newest(self, name: str, *, at: dt.datetime) -> Change | None:
        """Return the newest change of a template at a moment."""
        place = bisect_right(self._times.get(name, []), at)
        return self._of[name][place - 1] if place else None


def submit(studio: Studio, plans: Sequence[Plan], *, people: list[User]) -> History:
    """Make changes: popular templates have most, and each has some."""
    chance, calendar = studio.chance, studio.calendar
    began, quiet = calendar.began, calendar.ago(hours=QUIET_HOURS)
    paths = {plan.name: paths_of(plan) for plan in plans}
    shares = [plan.share + 0.6 for plan in plans]
    first = [calendar.began + dt.timedelta(minutes=n) for n in range(len(plans))]
    times = calendar.moments(A_DAY * calendar.days, after=began, before=quiet)
    number = FIRST_NUMBER
    changes = []
    for at, plan in zip(first, plans, strict=True):
        number += 1
        changes.append(_change(studio, number, at, [plan], paths, people))
    for at in sorted(max(at, first[-1]) for at in times):
        number += chance.randrange(1, 8)
        touched = chance.choices(plans, shares)
        if studio.happens(SECOND_TEMPLATE):
            touched += chance.choices(plans, shares)
        changes.append(_change(studio, number, at, touched, paths, people))
    return History(changes)


def _change(
    studio: Studio,
    number: int,
    at: dt.datetime,
    touched: Sequence[Plan],
    paths: Mapping[str, Sequence[str]],
    people: list[User],
) -> Change:
    chance = studio.chance
    return Change(
        number=number,
        at=at,
        user=chance.choice(people),
        title=words.change_title(chance, has_content=touched[0].tool in ARTISTS),
        paths={
            # The build script stays as it is: it is the first.
            plan.name: sorted(
                set(chance.choices(paths[plan.name][1:], k=chance.choice((1, 1, 2, 4))))
            )
            for plan in touched
        },
    )
