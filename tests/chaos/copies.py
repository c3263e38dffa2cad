"""A copy of a workspace at another site, and the workspace restored from it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from provisioner.copies.models import (
    MOVING_COPIES,
    CopiedSnapshot,
    CopyOperation,
    WorkspaceCopy,
)
from provisioner.copies.sweeps import sweep_copies
from provisioner.copies.workflows import DELETE, TRANSFER
from provisioner.engine.models import Operation
from provisioner.lib.names import tag_in
from tests.chaos.disturbing import Disturbed
from tests.chaos.freezing import Place
from tests.chaos.homes import HomeTrial
from tests.chaos.judge import Fault, orphan
from tests.chaos.mirror_judge import destination_of
from tests.chaos.patience import from_database
from tests.chaos.people import Person
from tests.chaos.sweeping import sweep_now
from tests.chaos.trial import SETTLED_WITHIN_SECONDS, Stuck, Trial
from tests.chaos.twins import TwinTrial
from tests.chaos.witness import OntapWitness, Perforce

APART = 60_000_000
KEEPER_APART = 65_000_000
C = WorkspaceCopy.State
STEPS: dict[str, list[Place]] = {
    str(kind): [(str(kind), spec.name) for spec in steps]
    for kind, steps in (
        (CopyOperation.TRANSFER, TRANSFER),
        (CopyOperation.DELETE, DELETE),
    )
}
TRIED = 8
PROMOTED = 0.4
SWEPT_EVERY_SECONDS = 1.0
PREFIX = "cloneyard-copy-"


class CopyTrial(HomeTrial):
    """A mirror whose rule has workspaces copied, until all of them are gone.

    What is restored at its site is copied to the home, too. At times the mirror is
    promoted before the workspace is restored from its copy.
    """

    def run(self, *, person: Person, p4: Perforce) -> list[Fault]:
        """Have a workspace at home and its copy; then end the rule and the mirror."""
        home = next(name for name in self.worlds if name != self.site)
        try:
            self._create()
            self.copied = self.mirror
            rule = self._ask("POST", "/copy-rules", self._rule)
            self.faults += self._cloned(person, p4, site=home).run()
            self._ask("DELETE", f"/copy-rules/{rule.body['id']}")
            self._until_copies_are_gone()
            if self.mirror != self.copied:
                self._settle_former_home()
            self._delete()
        except Stuck as stuck:
            self._blame(Fault(kind="stuck", what=str(stuck)))
        finally:
            self.world.board.end(self.key)
        return self.faults

    @property
    def _rule(self) -> dict[str, Any]:
        return {
            "mirror": self.mirror.pk,
            "every_minutes": 60,
            "purposes": ["development"],
        }

    def _meanwhile(self, clone: Trial) -> None:
        if clone.desk is None:
            return
        keeper = CopyKeeper(self, clone)
        keeper.appear()
        for _ in range(self.rng.randint(1, 2)):
            keeper.transfer()
        path, site = f"/workspaces/{clone._id}/restore-copy", self.site
        if self.rng.random() < PROMOTED:
            self._promote()
        twin = TwinTrial(clone, number=3, world=self.worlds[site], by=self.admin)
        body = {"site": site, "original_is_stopped": True}
        self._blame(*keeper.faults, *twin.have("recover", path, body))

    def _until_copies_are_gone(self) -> None:
        """Raises: Stuck."""
        of_template = {"workspace__template": self.copied.template_id}
        copies = WorkspaceCopy.objects.filter(**of_template)
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while from_database(copies.all().exists):
            if time.monotonic() > ends:
                left = from_database(lambda: list(copies.values("state", "name")))
                raise Stuck(f"copies of no rule: {left}")
            sweep_now(sweep_copies)
            time.sleep(SWEPT_EVERY_SECONDS)
        rows = WorkspaceCopy.with_deleted.filter(**of_template)
        for copy in from_database(
            lambda: list(rows.select_related("workspace__site", "site"))
        ):
            with self.world.servers.calm.at_work():
                self._blame(*what_is_wrong(copy, self.judge.clusters))


class CopyKeeper(Disturbed):
    """The copy of one workspace."""

    busy = ("copy_busy",)
    steps = STEPS

    def __init__(self, mirrored: CopyTrial, clone: Trial) -> None:
        super().__init__(
            mirrored.world,
            link=mirrored.link,
            key=KEEPER_APART + mirrored.seed,
        )
        self.mirrored = mirrored
        self.clone = clone

    def appear(self) -> None:
        """Wait until the sweep has made it and begun its first transfer.

        Raises: Stuck.
        """
        rows = WorkspaceCopy.objects.select_related("workspace__site", "site")
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while True:
            sweep_now(sweep_copies)
            found = from_database(rows.filter(workspace=self.clone._id).first)
            if found is not None:
                break
            if time.monotonic() > ends:
                raise Stuck("no copy is made")
            time.sleep(SWEPT_EVERY_SECONDS)
        self.copy = found
        self._settle()
        self._judge("first copy")

    def transfer(self) -> None:
        """Transfer with trouble, and without it until it has arrived.

        Raises: Stuck.
        """
        path, by = f"/workspace-copies/{self.copy.pk}/transfer", self.clone.person
        self._disturb(CopyOperation.TRANSFER, "POST", path, by=by)
        for _ in range(TRIED):
            if self.copy.state == C.READY:
                return
            self._ask("POST", path, by=by)
            self._settle()
            self._judge("copy again")
        raise Stuck(f"not copied: {self.copy.state} {self.copy.status_message}")

    def _operations(self) -> QuerySet[Operation]:
        return Operation.objects.filter(subject__workspacecopy=self.copy.pk)

    def _is_at_rest(self) -> bool:
        fields = ["state", "status_code", "status_message", "relationship_uuid"]
        from_database(lambda: self.copy.refresh_from_db(fields=fields))
        return self.copy.state not in MOVING_COPIES

    def _state(self) -> str:
        return f"{self.copy.state} {self.copy.status_code}".strip()

    def _look(self) -> list[Fault]:
        return what_is_wrong(self.copy, self.mirrored.judge.clusters)


def what_is_wrong(
    copy: WorkspaceCopy, clusters: Mapping[int, OntapWitness]
) -> list[Fault]:
    """Return what is wrong with a copy that stands still, at both of its ends."""
    there, here = clusters[copy.site_id], clusters[copy.workspace.site_id]
    volumes = there.volumes(tag=tag_in(copy.volume_comment))
    at_source = here.volumes(tag=tag_in(copy.workspace.volume_comment))
    ends = [
        list(map(destination_of, found)).count(copy.volume_path)
        for found in (there.relationships(), here.destinations())
    ]
    seen = {
        "volumes": len(volumes),
        "relationships": ends[0],
        "relationships known to the source": ends[1],
    }
    exact = {C.READY: 1, C.DELETED: 0}.get(C(copy.state))
    found = [
        orphan(f"copy {copy.state}: {count} {name}")
        for name, count in seen.items()
        if count > 1 or (exact is not None and count != exact)
    ]
    if copy.state == C.FAILED and not copy.status_message:
        found.append(Fault(kind="stuck", what="copy FAILED without a reason"))
    rows = CopiedSnapshot.objects.filter(copy=copy.pk)
    known = {row.name: row for row in from_database(lambda: list(rows))}
    taken = [
        name
        for volume in at_source
        for name in here.snapshots(volume["uuid"])
        if name.startswith(PREFIX)
    ]
    found += [
        orphan(f"copy {copy.state}: {name} of the workspace is in no row")
        for name in taken
        if name not in known
    ]
    if copy.state == C.READY and volumes:
        arrived = [name for name, row in known.items() if row.arrived_at]
        at_site = there.snapshots(volumes[0]["uuid"])
        found += [
            Fault(kind="lost", what=f"{name} has arrived, and is not there")
            for name in arrived
            if name not in at_site
        ]
        if len(taken) != 1 or len(known) != 1:
            found.append(orphan(f"copied, with {taken} of {sorted(known)}"))
    return found
