"""All trials, side by side on one set of servers, and what becomes of them."""

from __future__ import annotations

import itertools
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

from django.core.management import CommandError, call_command
from django.db import connection

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_create
from provisioner.catalog.models import Template
from provisioner.demo import depot
from provisioner.demo.checks import fingerprint
from provisioner.demo.seed import GID, PASSWORD, TEMPLATE_UID
from provisioner.gateways.snapshot_directories import SNAPSHOTS as DOT_SNAPSHOT
from provisioner.sites.actions.sites import site_save
from provisioner.sites.models import PerforceServer, Site
from provisioner.storage.actions import split_policy_save
from provisioner.workspaces.models import Workspace
from tests.chaos.bisections import STEPS as BISECTION_STEPS
from tests.chaos.builds import STEPS, Builder
from tests.chaos.copies import STEPS as COPY_STEPS
from tests.chaos.edits import Desk
from tests.chaos.faultboard import FaultBoard
from tests.chaos.freezing import Freezer, steps_of
from tests.chaos.judge import Fault, Judge
from tests.chaos.lookout import Lookout
from tests.chaos.mirrors import ABROAD
from tests.chaos.mirrors import STEPS as MIRROR_STEPS
from tests.chaos.moves import STEPS as MOVE_STEPS
from tests.chaos.patience import from_database, insist
from tests.chaos.people import Person
from tests.chaos.servers import Servers
from tests.chaos.stories import HERE, SNAPSHOTS, STEADY, Choice, Stories
from tests.chaos.trial import World
from tests.chaos.witness import OntapWitness, Perforce

FILES = 12
BUILD = "mkdir -p out && cat src/*.txt > out/all"
# A run of so many trials has to stop a worker in each step that ran.
FREEZES_IN_EVERY_STEP = 1000
SETTLED_WITHIN_SECONDS = 180.0


@dataclass(frozen=True, kw_only=True)
class ChaosOptions:
    trials: int
    seed: int
    side_by_side: int
    choice: Choice


def run_trials(
    options: ChaosOptions, *, scratch: Path, say: Callable[[str], None]
) -> dict[str, Any]:
    """Run all trials; return the summary."""
    servers = Servers(scratch)
    try:
        return _Run(options, servers=servers, scratch=scratch, say=say).run()
    finally:
        servers.stop()
        connection.close()


class _Run:
    def __init__(
        self,
        options: ChaosOptions,
        *,
        servers: Servers,
        scratch: Path,
        say: Callable[[str], None],
    ) -> None:
        self.options = options
        self.servers = servers
        self.scratch = scratch
        self.say = say
        self.failures: list[dict[str, Any]] = []
        self.done = 0
        self.lock = threading.Lock()
        self.began = time.monotonic()
        self.outcomes: Counter[str] = Counter()
        self.dump = scratch / "of-the-night.dump"
        self.drill = StringIO()
        seeds = range(options.seed, options.seed + options.trials)
        self.templates = options.choice.templates(seeds)

    def run(self) -> dict[str, Any]:
        lanes = min(self.options.side_by_side, self.options.trials)
        people = [Person(f"dev{n:02}", number=n) for n in range(lanes)]
        bystander = Person("bystander", number=900)
        admin = Person("admin", number=901, is_staff=True)
        self.servers.start_lab()
        call_command("migrate", verbosity=0, interactive=False)
        # There as they are: nobody looks at a page, and compressing takes seconds.
        call_command(
            "collectstatic", verbosity=0, interactive=False, post_process=False
        )
        everybody = [*people, bystander, admin]
        self.everybody = everybody
        for person in everybody:
            person.sign_up()
        self._fill_depot(everybody)
        site = self._make_site(HERE, self.servers.ontap)
        abroad = self._make_site(ABROAD, self.servers.abroad)
        self._make_templates(site)
        self.servers.start_product()
        for person in everybody:
            person.speak_to(self.servers.url)
        self.admin = admin
        self.world = self._make_world(site)
        witness = OntapWitness(self.servers.abroad)
        self.abroad = replace(
            self.world,
            judge=Judge(site=abroad, ontap=witness, p4=self._p4_of("cloneyard")),
        )
        self.builder = Builder(
            admin, self.world, p4=self._p4_of("cloneyard"), name=SNAPSHOTS
        )
        self.stories = Stories(
            self.options.choice,
            worlds={HERE: self.world, ABROAD: self.abroad},
            builder=self.builder,
            templates=self.templates,
        )
        for name in (STEADY, SNAPSHOTS):
            self._blame(self.options.seed, Builder.build_first(admin, name))
        self._blame(self.options.seed, self.builder.build_newer(seed=self.options.seed))
        desk = self._settle_bystander(bystander)
        template = from_database(
            lambda: Template.objects.select_related("site").get(name=STEADY)
        )
        before = (fingerprint(template), self._contents_of(desk))
        self.say(f"Ready after {time.monotonic() - self.began:.0f} s.")
        self._run_lanes(people)
        self.world.board.end_all()
        self._blame(self.options.seed, self.builder.settle())
        self._judge_everything()
        self._judge_freezes()
        self._judge_dump()
        self._blame(
            self.options.seed,
            [
                Fault(kind="ended", what=f"{what}, {times} times, and nobody killed it")
                for what, times in self.servers.ended.items()
            ],
        )
        if (fingerprint(template), self._contents_of(desk)) != before:
            self._blame(
                self.options.seed,
                [Fault(kind="touched", what="a template or another's workspace")],
            )
        return self._summary()

    # --- preparation

    def _p4_of(self, user: str) -> Perforce:
        is_ours = user == self.servers.perforce["user"]
        return Perforce(
            self.servers.perforce,
            user=user,
            password=self.servers.perforce["password"] if is_ours else PASSWORD,
            scratch=self.scratch / "p4" / user,
        )

    def _fill_depot(self, people: list[Person]) -> None:
        source = self.scratch / "source"
        (source / "src").mkdir(parents=True)
        for number in range(FILES):
            (source / "src" / f"file{number}.txt").write_text(f"line of {number}\n")
        perforce = self.servers.perforce
        account = depot.DepotAccount(
            port=perforce["port"], user=perforce["user"], password=perforce["password"]
        )
        p4 = depot.connect(account, client="chaos-admin", scratch=self.scratch)
        try:
            for person in people:
                depot.create_p4_user(p4, user=person.username, password=PASSWORD)
            for name in self.templates:
                depot.fill_depot(p4, source=source, name=name, scratch=self.scratch)
        finally:
            p4.disconnect()

    def _make_site(self, name: str, ontap: dict[str, Any]) -> Site:
        perforce = self.servers.perforce
        rescue_root = self.scratch / "rescue"
        rescue_root.mkdir(exist_ok=True)
        rescue_root.chmod(0o755)
        server, _ = PerforceServer.objects.get_or_create(
            name="chaos",
            defaults={"p4port": perforce["port"], "p4user": perforce["user"]},
        )
        admin = User.objects.get(username="admin")
        # Sites differ in who makes files their owner's and how clones are emptied.
        ways = self.options.seed % 4
        made = site_save(
            by=admin,
            site=Site(
                name=name,
                perforce_server=server,
                ontap_host=ontap["host"],
                ontap_port=ontap["port"],
                ontap_user=ontap["user"],
                ontap_ca_file=ontap["ca_file"],
                svm=ontap["svm"],
                aggregate=ontap["aggregate"],
                mount_root=ontap["mount_root"],
                export_clients=["10.0.0.0/8"],
                worker_clients=["127.0.0.1"],
                rescue_root=str(rescue_root),
                reown=Site.Reown.HOST if ways & 1 else Site.Reown.ONTAP,
                remove_contents=bool(ways & 2),
                shows_snapshots=True,
                template_uid=TEMPLATE_UID,
                template_gid=GID,
            ),
        )
        split_policy_save(by=admin, site=made, owners_may_split=True)
        return made

    def _make_templates(self, site: Site) -> None:
        for name in self.templates:
            template_create(
                by=User.objects.get(username="admin"),
                site=site,
                name=name,
                view=f"//depot/{name}/... //any/...",
                build_command=BUILD,
                build_timeout_seconds=60,
                ignore_patterns="out\n",
                volume_size_bytes=100 * 2**20,
                snapshots_to_keep=2,
            )

    def _make_world(self, site: Site) -> World:
        witness = OntapWitness(self.servers.ontap)
        return World(
            servers=self.servers,
            board=FaultBoard(
                clusters=[witness, OntapWitness(self.servers.abroad)],
                perforce_root=self.scratch / "lab" / "perforce",
            ),
            judge=Judge(site=site, ontap=witness, p4=self._p4_of("cloneyard")),
            lookout=Lookout(),
            freezer=Freezer(self.servers),
            templates=(STEADY, SNAPSHOTS),
            admin=self.admin,
            outcomes=self.outcomes,
        )

    def _settle_bystander(self, bystander: Person) -> Desk:
        answer = bystander.ask(
            "POST",
            "/workspaces?wait=60",
            {"template": STEADY, "name": "bystander"},
            key="bystander",
        )
        workspace = Workspace.objects.select_related(
            "site", "template", "snapshot"
        ).get(pk=answer.body["id"])
        desk = Desk(bystander, workspace, p4=self._p4_of("bystander"), seed=0)
        desk.work()
        return desk

    def _contents_of(self, desk: Desk) -> tuple[dict[str, bytes], dict[str, str]]:
        with self.servers.calm.at_work():
            files = {
                str(path): path.read_bytes()
                for path in sorted(desk.root.rglob("*"))
                if path.is_file()
                and not path.is_symlink()
                # Whose base snapshot it shows changes when a template is moved.
                and DOT_SNAPSHOT not in path.parts
            }
        return files, desk.opened()

    # --- the trials

    def _run_lanes(self, people: list[Person]) -> None:
        numbers = itertools.count()
        lanes = [
            threading.Thread(target=self._lane, args=[person, numbers], daemon=True)
            for person in people
        ]
        for lane in lanes:
            lane.start()
        while any(lane.is_alive() for lane in lanes):
            for lane in lanes:
                lane.join(0.5)
            self.servers.check()

    def _lane(self, person: Person, numbers: Iterator[int]) -> None:
        """Run one trial after the other as one person."""
        p4 = self._p4_of(person.username)
        while True:
            with self.lock:
                number = next(numbers)
            if number >= self.options.trials:
                break
            seed = self.options.seed + number
            try:
                self._blame(seed, self.stories.run(seed, person=person, p4=p4))
            except Exception as error:
                lines = traceback.format_exception(error, limit=-5, chain=False)
                said = "".join(lines)
                self._blame(seed, [Fault(kind="harness", what=said)])
            if number == self.options.trials // 2:
                # While others kill and cut the database, as on any night.
                insist(partial(call_command, "backup", self.dump), on=(CommandError,))
            with self.lock:
                self.done += 1
                if self.done % 10 == 0:
                    seconds = time.monotonic() - self.began
                    self.say(
                        f"{self.done} trials, {seconds:.0f} s, "
                        f"{len(self.failures)} failures"
                    )
        p4.close()
        connection.close()

    def _blame(self, seed: int, faults: list[Fault]) -> None:
        with self.lock:
            for fault in faults:
                self.failures.append(
                    {"seed": seed, "kind": fault.kind, "what": fault.what}
                )
                self.say(f"seed {seed}: {fault.kind}: {fault.what}")

    # --- the end

    def _judge_everything(self) -> None:
        """Look at everything; what is only late gets the time to settle."""
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while found := self._everything_found():
            if time.monotonic() > ends:
                self._blame(self.options.seed, found)
                return
            time.sleep(1.0)

    def _everything_found(self) -> list[Fault]:
        return [
            *self.world.judge.check_everything(),
            *self.abroad.judge.check_site(),
            *self.stories.mirror_judge.check_everything(),
        ]

    def _judge_freezes(self) -> None:
        """Hold against a long run that it stopped no worker in some step.

        Transfers, bisections, mirrors and what is as seldom are too few for theirs.
        """
        requests = ("create", "check", "retire", "restore", "purge")
        often = [*STEPS, *(place for name in requests for place in steps_of(name))]
        others = (*MIRROR_STEPS.values(), *COPY_STEPS.values(), *MOVE_STEPS.values())
        rare = (
            *("transfer", "clone", "recover", "split", "stop split"),
            *("compare", "take back", "restore snapshot"),
        )
        seldom = [*BISECTION_STEPS, *(place for steps in others for place in steps)]
        seldom += [place for name in rare for place in steps_of(name)]
        missed = self.world.freezer.missed(often)
        self.missed = [*missed, *self.world.freezer.missed(seldom)]
        if self.options.trials >= FREEZES_IN_EVERY_STEP:
            self._blame(
                self.options.seed,
                [
                    Fault(kind="harness", what=f"no worker was stopped in {place}")
                    for place in missed
                ],
            )

    def _judge_dump(self) -> None:
        """Hold the drill of the dump from between the trials against the run."""
        try:
            call_command("backup_drill", self.dump, stdout=self.drill)
        except CommandError as error:
            self._blame(self.options.seed, [Fault(kind="lost", what=f"{error}")])

    def _summary(self) -> dict[str, Any]:
        counts = Counter(failure["kind"] for failure in self.failures)
        return {
            "trials": self.done,
            "kinds": dict(sorted(self.stories.kinds.items())),
            "seed": self.options.seed,
            "kills": dict(self.servers.kills),
            "frozen in step": dict(sorted(self.world.freezer.counts.items())),
            "not frozen in": self.missed,
            "faults": dict(self.world.board.counts),
            "outcomes": dict(sorted(self.outcomes.items())),
            "drill": self.drill.getvalue().splitlines(),
            "answers": dict(sum((p.answers for p in self.everybody), Counter())),
            **{
                kind: counts[kind]
                for kind in (
                    *("orphans", "stuck", "lost", "touched", "ended", "harness"),
                )
            },
            "failures": self.failures,
            "seconds": round(time.monotonic() - self.began, 1),
        }
