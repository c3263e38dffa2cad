"""What the trial of a seed is about."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tests.chaos.bisections import BisectionTrial
from tests.chaos.builds import Builder
from tests.chaos.copies import APART as COPIES_APART
from tests.chaos.copies import CopyTrial
from tests.chaos.disturbing import Link
from tests.chaos.homes import APART as HOMES_APART
from tests.chaos.homes import HomeTrial, home_of
from tests.chaos.judge import Fault
from tests.chaos.leases import keep
from tests.chaos.mirror_judge import MirrorJudge
from tests.chaos.mirrors import ABROAD, MirrorTrial
from tests.chaos.mirrors import APART as MIRRORS_APART
from tests.chaos.moves import MoveTrial
from tests.chaos.people import Person
from tests.chaos.snapshots import SnapshotTrial
from tests.chaos.transfers import transfer_of
from tests.chaos.trial import Trial, World
from tests.chaos.twins import clone_of
from tests.chaos.witness import Perforce

HERE = "chaos"
STEADY, SNAPSHOTS = "steady", "snapshots"
TRAVELING = ("traveling-1", "traveling-2", "traveling-3")
"""Templates whose home moves: nobody else has workspaces of them."""
BUILT_EVERY = 7
BISECTED_EVERY = 11
MOVED_EVERY = 8
# By the remainder of a seed; the others are plain ones.
SELDOM = {1: "home", 3: "snapshot", 6: "copy", 8: "home", 9: "snapshot", 11: "copy"}
REMAINDERS = 12
# What has the story of one with a mirror, its templates, and where faults are put.
MIRRORED: dict[str, tuple[type[MirrorTrial], tuple[str, ...], int]] = {
    "mirror": (MirrorTrial, (SNAPSHOTS, STEADY), MIRRORS_APART),
    "home": (HomeTrial, TRAVELING, HOMES_APART),
    "copy": (CopyTrial, TRAVELING, COPIES_APART),
}
KINDS = ("plain", "move", "snapshot", *MIRRORED)
ERRANDS = {"transfer": transfer_of, "clone": clone_of, "keep": keep}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How many trials have a mirror; with `only`, the kind of all of them."""

    mirrored_every: int
    only: str

    def kind_of(self, seed: int) -> str:
        """Return the kind of a seed's trial."""
        if self.only:
            return self.only
        if seed % self.mirrored_every == 0:
            return "mirror"
        return SELDOM.get(seed % REMAINDERS, "plain")

    def templates(self, seeds: range) -> tuple[str, ...]:
        """Return the names of the templates that these trials need."""
        travels = {"home", "copy"} & set(map(self.kind_of, seeds))
        return (STEADY, SNAPSHOTS, *(TRAVELING if travels else ()))


class Stories:
    """Runs the trial of a seed; where no template is free for it, a plain one.

    `worlds` are those of each site, by its name.
    """

    def __init__(
        self,
        choice: Choice,
        *,
        worlds: Mapping[str, World],
        builder: Builder,
        templates: tuple[str, ...],
    ) -> None:
        self.choice = choice
        self.worlds = worlds
        self.world = worlds[HERE]
        self.builder = builder
        self.kinds: Counter[str] = Counter()
        judges = [world.judge for world in worlds.values()]
        self.mirror_judge = MirrorJudge({j.site.pk: j.ontap for j in judges})
        self._link = Link([judge.ontap for judge in judges])
        # A template has one mirror at a site.
        self._turns = {name: threading.Lock() for name in templates}

    def run(self, seed: int, *, person: Person, p4: Perforce) -> list[Fault]:
        """Run what a seed stands for; return what was found wrong."""
        found, kind = list[Fault](), self.choice.kind_of(seed)
        if seed % BUILT_EVERY == 0:
            found += self.builder.run(seed)
        if seed % BISECTED_EVERY == 0:
            found += BisectionTrial(
                self.world, seed=seed, person=person, builder=self.builder
            ).run()
        is_moved = seed % MOVED_EVERY == 0 and not self.choice.only
        if kind == "move" or is_moved:
            self.kinds["move"] += 1
            found += MoveTrial(
                self.world, link=self._link, seed=seed, template=STEADY
            ).run()
        if kind in MIRRORED:
            mirrored = self._mirrored(kind, seed, person, p4)
            if mirrored is not None:
                return found + mirrored
        trial_of = SnapshotTrial if kind == "snapshot" else Trial
        self.kinds[kind if kind == "snapshot" else "plain"] += 1
        trial = trial_of(self.world, seed=seed, person=person, p4=p4, errands=ERRANDS)
        return found + trial.run()

    def _mirrored(
        self, kind: str, seed: int, person: Person, p4: Perforce
    ) -> list[Fault] | None:
        """Run one with a mirror; None where no template is free for it."""
        trial_of, names, apart = MIRRORED[kind]
        turned = seed % 4 == 0 if kind == "mirror" else seed % len(names)
        for name in (*names[turned:], *names[:turned]):
            if self._turns[name].acquire(blocking=False):
                try:
                    self.kinds[kind] += 1
                    home = home_of(name)
                    built = self._built(name, self.worlds[home])
                    trial = trial_of(
                        self.worlds[home],
                        worlds=self.worlds,
                        judge=self.mirror_judge,
                        link=self._link,
                        seed=seed,
                        builder=self.builder,
                        template=name,
                        site=HERE if home == ABROAD else ABROAD,
                        apart=apart,
                        errands=ERRANDS,
                    )
                    return built + trial.run(person=person, p4=p4)
                finally:
                    self._turns[name].release()
        return None

    def _built(self, name: str, world: World) -> list[Fault]:
        """Build a template that only few trials need, once one does."""
        return Builder(world.admin, world, p4=self.builder.p4, name=name).settle()
