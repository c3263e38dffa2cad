"""The company as a whole: founded once, and grown to a number of workspaces."""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable
from math import ceil

from provisioner.accounts.models import Team, User
from provisioner.demo.company import people, places
from provisioner.demo.company.bisections import Bisections
from provisioner.demo.company.builds import Builder
from provisioner.demo.company.changes import History, submit
from provisioner.demo.company.configuration import configure
from provisioner.demo.company.drift import Differences, Drift
from provisioner.demo.company.drills import Drills
from provisioner.demo.company.events import Log
from provisioner.demo.company.fates import Fates
from provisioner.demo.company.insight import watch
from provisioner.demo.company.lives import Lives
from provisioner.demo.company.measures import Measures
from provisioner.demo.company.mirrors import Mirrors
from provisioner.demo.company.office import Office
from provisioner.demo.company.operations import Engine
from provisioner.demo.company.owners import Owners
from provisioner.demo.company.plans import plans
from provisioner.demo.company.recipes import Recipes
from provisioner.demo.company.routing import route
from provisioner.demo.company.sandboxes import Copies
from provisioner.demo.company.server_log import list_clients, log_a_day
from provisioner.demo.company.studio import SEED, CompanySize, Studio
from provisioner.demo.company.telling import Telling
from provisioner.demo.company.templates import (
    Built,
    define,
    pin,
    remember_changes,
    withdraw_unneeded,
)
from provisioner.mirrors.models import Mirror
from provisioner.probes.queries import keep_weeks
from provisioner.sites.models import Site
from provisioner.workspaces.models import PUT_AWAY, Workspace

W = Workspace.State
AT_ONCE = 2000
FULL = 0.84
TIB = 2**40


class Company:
    """Half a year of a studio, up to `now`; the same seed and moment give the same."""

    def __init__(
        self, size: CompanySize, *, now: dt.datetime, seed: int = SEED
    ) -> None:
        self.size = size
        self.studio = Studio(self.size, seed=seed, now=now)
        self.log = Log(self.studio)
        self.engine = Engine(self.studio)
        self.differences = Differences()
        self.workspaces: list[Workspace] = []
        self.mirrors: list[Mirror] = []

    def found(self) -> None:
        """Write everything, with the first of its workspaces."""
        studio, log, engine = self.studio, self.log, self.engine
        self.people = people.settle(studio)
        self.places = places.settle(studio, admin=self.people.admin)
        self.templates = define(
            studio,
            plans(self.size.templates),
            places=self.places,
            admin=self.people.admin,
            owners=[self.people.bob, *self.people.administrators],
            log=log,
        )
        self.history: History = submit(
            studio,
            [built.plan for built in self.templates],
            people=self.people.developers,
        )
        Builder(
            studio, engine=engine, log=log, people=self.people, history=self.history
        ).build_all(self.templates)
        self.lives = Lives(studio, people=self.people, engine=engine, log=log)
        self.lives.pooling.open(self.templates)
        self.fates = Fates(studio, people=self.people, templates=self.templates)
        first = min(self.size.workspaces, AT_ONCE)
        self.workspaces += [
            self.lives.live(fate) for fate in self.fates.draw(first, with_alice=True)
        ]
        self._settle()
        studio.write()
        # As a sweep did each night.
        keep_weeks(now=studio.now)
        log_a_day(studio, places=self.places, people=self.people)
        self._have_joined()

    def grow(self, to: int) -> None:
        """Add workspaces up to a number, not counting pools and bisection steps."""
        while len(self.workspaces) < to:
            number = min(to - len(self.workspaces), AT_ONCE)
            fates = self.fates.draw(number, with_alice=False)
            self.workspaces += [self.lives.live(fate) for fate in fates]
            self.studio.write()

    def _settle(self) -> None:
        """Add everything that depends on the rows made so far."""
        studio, log = self.studio, self.log
        searches = Bisections(studio, people=self.people, engine=self.engine, log=log)
        searches.search(self.templates, self.history)
        self.workspaces += [*self.lives.pooling.fill(), *searches.made]
        there = [each for each in self.workspaces if each.state != W.RETIRED]
        needed = {each.snapshot.pk for each in there}
        for built in self.templates:
            withdraw_unneeded(built, needed=needed)
            pin(built, self.history)
            self.lives.provisioning.settle(built.snapshots)
        self.mirrors = Mirrors(
            studio,
            places=self.places,
            admin=self.people.admin,
            engine=self.engine,
            log=log,
        ).keep(self.templates)
        Owners(studio, leases=self.lives.leases, log=log).judge(self.templates, there)
        remember_changes(studio, self.templates, self.history)
        for site in self.places.all:
            self._measure(site, [each for each in there if each.site == site])
        self._measure_teams(there)
        drift = Drift(studio, people=self.people, places=self.places, log=log)
        self.differences = drift.find(self.workspaces, self.templates)
        Telling(studio, people=self.people, log=log).tell(self.templates)
        Office(studio, people=self.people, log=log).go_on(self.places, self.templates)
        route(studio, places=self.places, people=self.people)
        watch(studio, places=self.places, people=self.people)
        configure(studio, self.places)
        list_clients(studio, places=self.places, people=self.people)
        copies = Copies(
            studio,
            places=self.places,
            people=self.people,
            engine=self.engine,
            log=log,
        )
        copies.happen()
        Recipes(copies).follow()
        Drills(copies).follow()
        Measures(copies).take(self.templates)

    def _measure(self, site: Site, there: list[Workspace]) -> None:
        templates = [each for each in self.templates if each.template.site == site]
        filled = [
            each for each in self.mirrors if each.site == site and each.volume_uuid
        ]
        used = used_bytes(there, templates)
        used += sum(each.template.used_bytes or 0 for each in filled)
        places.measure(
            self.studio,
            site,
            size=max(ceil(4 * used / FULL / TIB), 1) * TIB // 4,
            now_used=used,
            clones=len(there),
            volumes=len(there) + len(templates) + len(filled) + 1,
        )

        for built in templates:
            places.count_days(
                self.studio,
                built.template,
                clones=sum(each.template == built.template for each in there),
                snapshots=sum(each.is_there for each in built.snapshots),
            )

    def _measure_teams(self, there: list[Workspace]) -> None:
        held = defaultdict[Team, list[Workspace]](list)
        for each in there:
            if each.owner.team is not None and not each.is_pooled:
                held[each.owner.team].append(each)
        for team, of_team in held.items():
            places.count_days_of_team(
                self.studio,
                team,
                workspaces=sum(each.state not in PUT_AWAY for each in of_team),
                taken_bytes=sum(each.unique_bytes or 0 for each in of_team),
            )

    def _have_joined(self) -> None:
        """Put the demo's people, whose rows exist, into their team."""
        fields = ["team", "max_workspaces", "email"]
        User.objects.bulk_update([self.people.alice, self.people.bob], fields)


def used_bytes(workspaces: Iterable[Workspace], templates: Iterable[Built]) -> int:
    """Return what workspaces and templates of a site take, as measured."""
    own = sum(each.unique_bytes or 0 for each in workspaces)
    return own + sum(each.template.used_bytes or 0 for each in templates)
