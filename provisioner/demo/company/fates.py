"""Which workspaces are requested, by whom and when, and what becomes of them."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.demo.company.people import People
from provisioner.demo.company.studio import Studio
from provisioner.demo.company.templates import Built
from provisioner.workspaces.models import MOVING, Workspace

W = Workspace.State
P = Workspace.Purpose
HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)

OF_PEOPLE = {
    W.READY: 74.0,
    W.RETIRED: 15.0,
    W.TRASHED: 6.0,
    W.FAILED: 2.5,
    W.PROVISIONING: 0.7,
    W.RETIRING: 0.6,
    W.RESTORING: 0.3,
    W.PURGING: 0.2,
}
OF_MACHINES = {W.READY: 6.0, W.RETIRED: 93.0, W.FAILED: 1.0}
# Of what stands still: the server of the site abroad is paused.
ABROAD_ALONE = (W.PROVISIONING, W.RETIRING, W.RESTORING)
MOST_OF_A_PERSON = 9
# What alice has, so that her pages show what there is to see.
OF_ALICE = (
    (W.READY, 0.4),
    (W.READY, 28.0),
    (W.READY, 75.0),
    (W.READY, 3.0),
    (W.FAILED, 1.0),
    (W.TRASHED, 33.0),
    (W.RETIRED, 90.0),
    (W.RETIRED, 60.0),
)


@dataclass(frozen=True, kw_only=True)
class Fate:
    """The plan of one workspace: requested at `at`, in `state` now."""

    owner: User
    built: Built
    purpose: str
    state: Workspace.State
    at: dt.datetime


class Fates:
    """Draws them at random; few people exceed the quotas of a studio."""

    def __init__(
        self, studio: Studio, *, people: People, templates: Sequence[Built]
    ) -> None:
        self._studio, self._people = studio, people
        self._others = [each for each in people.developers if each != people.alice]
        self._there: Counter[int] = Counter()
        ready = [each for each in templates if each.snapshots]
        self._at_home = [each for each in ready if not each.plan.is_abroad]
        self._abroad = [each for each in ready if each.plan.is_abroad]
        self._all = ready

    def draw(self, number: int, *, with_alice: bool) -> list[Fate]:
        """Return so many, earliest first."""
        found: list[Fate] = []
        if with_alice:
            found += self._of_alice()
            found += (self._one(state) for state in MOVING)
        found = found[:number]
        found += [self._one() for _ in range(number - len(found))]
        return sorted(found, key=lambda fate: fate.at)

    def _of_alice(self) -> Iterator[Fate]:
        for place, (state, days) in enumerate(OF_ALICE):
            yield Fate(
                owner=self._people.alice,
                built=self._at_home[place % min(4, len(self._at_home))],
                purpose=P.DEVELOPMENT,
                state=state,
                at=self._studio.calendar.ago(days=days),
            )

    def _one(self, wanted: Workspace.State | None = None) -> Fate:
        chance = self._studio.chance
        is_machine = wanted is None and self._studio.happens(0.22)
        weights = OF_MACHINES if is_machine else OF_PEOPLE
        [drawn] = chance.choices(list(weights), list(weights.values()))
        state = wanted or drawn
        built = self._template(state)
        purpose = P.DEVELOPMENT
        [owner] = chance.choices(self._people.machines, (6, 1, 1))
        if is_machine:
            purpose = chance.choices((P.CI, P.CI_EDIT, P.BUILD), (7, 1, 2))[0]
        else:
            owner = self._person(state)
        at = self._asked_at(state, is_machine=is_machine)
        at = max(at, built.offered[0].created_at + HOUR)
        return Fate(owner=owner, built=built, purpose=purpose, state=state, at=at)

    def _template(self, state: Workspace.State) -> Built:
        among = self._abroad if state in ABROAD_ALONE else self._all
        among = among or self._all
        [built] = self._studio.chance.choices(
            among, [each.plan.share + 0.2 for each in among]
        )
        return built

    def _person(self, state: Workspace.State) -> User:
        chance = self._studio.chance
        owner = chance.choice(self._others)
        for _ in range(20):
            if self._there[owner.pk] < (owner.max_workspaces or MOST_OF_A_PERSON) - 1:
                break
            owner = chance.choice(self._others)
        if state not in (W.RETIRED,):
            self._there[owner.pk] += 1
        return owner

    def _asked_at(self, state: Workspace.State, *, is_machine: bool) -> dt.datetime:
        calendar, chance = self._studio.calendar, self._studio.chance
        if is_machine and state != W.RETIRED:
            return calendar.moment(after=calendar.ago(hours=3.8), before=calendar.now)
        if state == W.RETIRED:
            before = calendar.ago(hours=6) if is_machine else calendar.ago(days=9)
            return calendar.moment(after=calendar.began + DAY, before=before)
        if state == W.PROVISIONING:
            return calendar.ago(minutes=chance.uniform(4, 200))
        if state == W.FAILED:
            return calendar.moment(after=calendar.ago(days=6), before=calendar.now)
        days = min(chance.expovariate(1 / 31), 150) + 0.1
        at = calendar.ago(days=days)
        return calendar.moment(after=at - 2 * DAY, before=min(at + DAY, calendar.now))
