"""Workspaces with the work of another: cloned from it, or restored from its copy."""

from __future__ import annotations

import os
import time
from typing import Any

from provisioner.cloning.models import SNAPSHOT_PREFIX
from provisioner.cloning.sweeps import release_sources
from provisioner.lib.names import tag_in
from provisioner.workspaces.models import Workspace
from tests.chaos.edits import Desk, Edit, text_of
from tests.chaos.judge import Fault, orphan
from tests.chaos.patience import from_database
from tests.chaos.people import Person
from tests.chaos.sweeping import sweep_now
from tests.chaos.trial import SETTLED_WITHIN_SECONDS, Stuck, Trial, World

W = Workspace.State
# Apart from trials, transfers, and what else breaks something.
APART = 50_000_000
TRIED = 6
SWEPT_EVERY_SECONDS = 1.0


def clone_of(source: Trial, number: int) -> list[Fault]:
    """Clone a trial's workspace; return what was found wrong."""
    path = f"/workspaces/{source._id}/clone"
    found = TwinTrial(source, number=number).have("clone", path, {})
    return found or _unreleased(source)


def _unreleased(source: Trial) -> list[Fault]:
    """Return what a workspace still keeps for clones that are gone, after sweeps."""
    assert source.workspace is not None
    ontap, tag = source.world.judge.ontap, tag_in(source.workspace.volume_comment)
    ends = time.monotonic() + SETTLED_WITHIN_SECONDS
    while True:
        kept = [
            name
            for volume in ontap.volumes(tag=tag)
            for name in ontap.snapshots(volume["uuid"])
            if name.startswith(SNAPSHOT_PREFIX)
        ]
        if not kept or time.monotonic() > ends:
            return [orphan(f"{name} of a clone that is gone") for name in kept]
        sweep_now(release_sources)
        time.sleep(SWEPT_EVERY_SECONDS)


class TwinTrial(Trial):
    """The other workspace, from its beginning to its end.

    The source is only read: its own trial judges it as if nothing had been asked.
    """

    def __init__(
        self,
        source: Trial,
        *,
        number: int,
        world: World | None = None,
        by: Person | None = None,
    ) -> None:
        super().__init__(
            world or source.world,
            seed=source.seed + number * APART,
            person=source.person,
            p4=source.p4,
        )
        assert source.desk is not None
        self.name = f"{source.name}-twin-{number}"
        self.edits = source.desk.edits
        # A discard that was undone has reverted what was opened.
        self.opened = source.desk.opened()
        self.by = by or source.person

    def have(self, name: str, path: str, body: dict[str, Any]) -> list[Fault]:
        """Ask for it, look at what it has, and remove it."""
        try:
            self._disturbed(name, "POST", path, {**body, "name": self.name})
            if self.workspace is not None:
                self._insist_on_it()
                self._remove()
        except Stuck as stuck:
            self._blame(Fault(kind="stuck", what=str(stuck)))
        finally:
            self.world.board.end(self.seed)
        return self.faults

    def _insist_on_it(self) -> None:
        """Try again what failed, as people do, and look at what it has."""
        for _ in range(TRIED):
            state = self._reloaded().state
            if state == W.READY:
                self._blame(*self._missing())
            if state != W.FAILED:
                return
            self._ask("retry", "POST", f"/workspaces/{self._id}/retry", None)
            self._settle()
            self._judge("retry of a twin")

    def _missing(self) -> list[Fault]:
        """Return what is neither there nor said not to be."""
        workspace = self._reloaded()
        made = from_database(
            lambda: list(workspace.operations.values_list("findings", flat=True))
        )
        told = str(made)
        desk = Desk(self.person, workspace, p4=self.p4, seed=self.seed)
        with self.world.servers.calm.at_work():
            opened = desk.opened()
            return [
                Fault(kind="lost", what=f"{edit.kind} of the original {what}")
                for edit in self.edits
                if edit.path
                for what in self._wrong_with(edit, opened, told)
            ]

    def _wrong_with(self, edit: Edit, opened: dict[str, str], told: str) -> list[str]:
        assert self.workspace is not None
        path, found = self.workspace.path / edit.path, []
        if edit.kind == "deleted":
            is_there = not os.path.lexists(path)
        else:
            is_there = edit.token in text_of(path)
        if not is_there:
            found.append("is not in its files")
        seen = opened.get(edit.path, "nothing")
        if seen != self.opened.get(edit.path, "nothing") and edit.path not in told:
            found.append(f"is opened for {seen}")
        return found

    def _asker(self, name: str) -> Person:
        """Return who asks: an administrator confirms that an original is stopped."""
        return self.by if name == "recover" else self.person
