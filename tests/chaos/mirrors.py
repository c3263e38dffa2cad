"""A mirror and a clone at its site, while everything breaks and the link is cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.db.models import QuerySet

from provisioner.engine.models import Operation
from provisioner.mirrors.models import MOVING_MIRRORS, Mirror, MirrorOperation
from provisioner.mirrors.queries import next_to_transfer
from provisioner.mirrors.workflows import (
    CREATE,
    DELETE,
    GIVE_UP,
    PROMOTE,
    REESTABLISH,
    TRANSFER,
)
from provisioner.workspaces.models import Workspace
from tests.chaos.builds import Builder
from tests.chaos.disturbing import Disturbed, Link
from tests.chaos.freezing import Place
from tests.chaos.judge import Fault
from tests.chaos.mirror_judge import MirrorJudge
from tests.chaos.patience import from_database
from tests.chaos.people import Person
from tests.chaos.trial import NONE, Errand, Stuck, Trial, World
from tests.chaos.witness import Perforce

# Its faults are put apart from those of trials, builds and bisections.
APART = 30_000_000
ABROAD = "abroad"
M = Mirror.State
STEPS: dict[str, list[Place]] = {
    str(kind): [(str(kind), spec.name) for spec in steps]
    for kind, steps in (
        (MirrorOperation.CREATE, CREATE),
        (MirrorOperation.TRANSFER, TRANSFER),
        (MirrorOperation.DELETE, DELETE),
        (MirrorOperation.PROMOTE, PROMOTE),
        (MirrorOperation.REESTABLISH, REESTABLISH),
        (MirrorOperation.GIVE_UP, GIVE_UP),
    )
}
TRIED = 8
WHAT_CHANGES = ("state", "status_code", "status_message", "start", "relationship_uuid")


class CloneAt(Trial):
    """A workspace at a site of a template; `meanwhile` runs once while it is there."""

    def __init__(
        self,
        world: World,
        *,
        seed: int,
        person: Person,
        p4: Perforce,
        template: str,
        site: str,
        meanwhile: Callable[[Trial], None],
        errands: Mapping[str, Errand],
    ) -> None:
        super().__init__(world, seed=seed, person=person, p4=p4, errands=errands)
        self.template = template
        self.site = site
        self.meanwhile = meanwhile

    def _make(self) -> None:
        body = {"template": self.template, "site": self.site, "name": self.name}
        self._disturbed("create", "POST", "/workspaces", body)

    def _work(self) -> None:
        super()._work()
        self.meanwhile(self)


class MirrorTrial(Disturbed):
    """A mirror of one template, from its creation to its deletion.

    `worlds` are those of each site, by its name.
    """

    # ONTAP of both ends is asked before a mirror is made, and is cut off at times.
    busy = ("mirror_busy", "mirror_site_unfit")
    steps = STEPS

    def __init__(
        self,
        world: World,
        *,
        worlds: Mapping[str, World],
        judge: MirrorJudge,
        link: Link,
        seed: int,
        builder: Builder,
        template: str,
        site: str = ABROAD,
        apart: int = APART,
        errands: Mapping[str, Errand] = NONE,
    ) -> None:
        super().__init__(world, link=link, key=apart + seed)
        self.worlds = worlds
        self.judge = judge
        self.seed = seed
        self.builder = builder
        self.template = template
        self.site = site
        self.errands = errands
        self.clone: Trial | None = None

    def run(self, *, person: Person, p4: Perforce) -> list[Fault]:
        """Create it, clone from it, change it meanwhile, delete it; judge each."""
        try:
            self._create()
            self.faults += self._cloned(person, p4, site=self.site).run()
            self._delete()
        except Stuck as stuck:
            self._blame(Fault(kind="stuck", what=str(stuck)))
        finally:
            self.world.board.end(self.key)
        return self.faults

    def _cloned(self, person: Person, p4: Perforce, *, site: str) -> Trial:
        self.clone = CloneAt(
            self.worlds[site],
            seed=self.seed,
            person=person,
            p4=p4,
            template=self.template,
            site=site,
            meanwhile=self._meanwhile,
            errands=self.errands,
        )
        return self.clone

    # --- the story

    def _create(self) -> None:
        body = {
            "template": self.template,
            "site": self.site,
            "keep": self.rng.choice((1, 2, 10)),
            "start": self.rng.choice((Mirror.Start.AT_ONCE, Mirror.Start.BY_HAND)),
        }
        self._disturb(MirrorOperation.CREATE, "POST", "/mirrors", body)
        self._insist_on_default()

    def _meanwhile(self, clone: Trial) -> None:
        """Transfer, retry and change it, and try to delete it below its clone."""
        throttle = {"throttle_kilobytes": self.rng.choice((0, 50_000))}
        self._ask("PATCH", self._path, throttle)
        self._is_at_rest()
        if self.mirror.state == M.READY and self.rng.random() < 0.5:
            self._disturb(MirrorOperation.CREATE, "POST", f"{self._path}/retry")
        if self.template == self.builder.template.name and self.rng.random() < 0.7:
            self._blame(*self.builder.build_newer(seed=self.seed))
            path = f"{self._path}/transfer"
            self._disturb(MirrorOperation.TRANSFER, "POST", path, {})
        self._insist_on_default()
        self._must_not_be_deleted()

    def _must_not_be_deleted(self) -> None:
        assert self.clone is not None
        workspace = self.clone.workspace
        if workspace is None:
            return
        answer = self._ask("DELETE", self._path)
        state = from_database(
            lambda: Workspace.objects.values_list("state", flat=True).get(
                pk=workspace.pk
            )
        )
        if state == Workspace.State.READY and answer.status != 409:
            self._blame(Fault(kind="lost", what=f"deleted below {workspace.name}"))
        self._judge("delete while in use")

    def _delete(self) -> None:
        """Delete it as an administrator would: that works always, sooner or later."""
        self._insist(MirrorOperation.DELETE, "DELETE", self._path, until={M.DELETED})

    def _insist(self, kind: str, method: str, path: str, *, until: set[M]) -> None:
        """Ask with trouble, and without it until one of these states has come about.

        Raises: Stuck.
        """
        for attempt in range(TRIED):
            if attempt:
                self._ask(method, path)
                self._settle()
                self._judge(f"{kind} again")
            else:
                self._disturb(kind, method, path)
            if self.mirror.state in until:
                return
        raise Stuck(f"{kind}: {self.mirror.state} {self.mirror.status_message}")

    def _insist_on_default(self) -> None:
        """Retry until it has the template's default snapshot; that works always."""
        for _ in range(TRIED):
            self._is_at_rest()
            mirror = self.mirror
            if mirror.state == M.READY and not self._lacks_default():
                return
            is_by_hand = mirror.state == M.READY and mirror.start == "by-hand"
            verb = "transfer" if is_by_hand else "retry"
            self._ask("POST", f"{self._path}/{verb}", {} if is_by_hand else None)
            self._settle()
            self._judge(verb)
        raise Stuck(f"nothing arrives: {mirror.state} {mirror.status_message}")

    def _lacks_default(self) -> bool:
        return from_database(lambda: next_to_transfer(self.mirror)) is not None

    # --- its row

    def _heard(self, path: str) -> None:
        if path == "/mirrors":
            # Where its answer was lost, it exists.
            self._find()

    def _find(self) -> None:
        mirrors = Mirror.objects.select_related(
            "template__site__perforce_server", "site__perforce_server"
        )
        named = {"template__name": self.template, "site__name": self.site}
        self.mirror = from_database(lambda: mirrors.get(**named))

    @property
    def _path(self) -> str:
        return f"/mirrors/{self.mirror.pk}"

    def _operations(self) -> QuerySet[Operation]:
        return Operation.objects.filter(
            subject__mirror__template__name=self.template,
            subject__mirror__site__name=self.site,
        )

    def _is_at_rest(self) -> bool:
        from_database(lambda: self.mirror.refresh_from_db(fields=WHAT_CHANGES))
        return self.mirror.state not in MOVING_MIRRORS

    def _state(self) -> str:
        return f"{self.mirror.state} {self.mirror.status_code}".strip()

    def _look(self) -> list[Fault]:
        return self.judge.check_at(self.mirror)

    def _blame(self, *faults: Fault) -> None:
        said = "; ".join(self.history)
        self.faults += [
            Fault(kind=fault.kind, what=f"{fault.what} [mirror: {said}]")
            for fault in faults
        ]
