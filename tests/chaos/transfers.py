"""A transfer of what a trial left in its workspace, while everything breaks."""

from __future__ import annotations

import os
from typing import Any

from provisioner.transfer.models import Transfer
from provisioner.workspaces.models import Workspace
from tests.chaos.edits import Edit, text_of
from tests.chaos.judge import Fault
from tests.chaos.patience import from_database
from tests.chaos.trial import Stuck, Trial

W = Workspace.State
# Apart from the trials, whose numbers faults are put by, and from builds.
APART = 10_000_000
TRIED = 4


def transfer_of(source: Trial, number: int) -> list[Fault]:
    """Transfer the work of a trial; return what was found wrong."""
    return TransferTrial(source, number=number).run()


class TransferTrial(Trial):
    """The newer workspace of a transfer, from its beginning to its end.

    The source is only read: its own trial judges it as if nothing had been asked.
    """

    def __init__(self, source: Trial, *, number: int) -> None:
        super().__init__(
            source.world,
            seed=source.seed + number * APART,
            person=source.person,
            p4=source.p4,
        )
        assert source.desk is not None
        self.name = f"{source.name}-{number}"
        self.edits = source.desk.edits
        self.source_id = source._id

    def run(self) -> list[Fault]:
        """Transfer, look at what arrived, and remove the newer one."""
        try:
            path = f"/workspaces/{self.source_id}/transfer"
            body = {"name": self.name, "untracked": True, "retire": False}
            self._disturbed("transfer", "POST", path, body)
            if self.workspace is not None:
                self._insist_on_it()
                self._remove()
        except Stuck as stuck:
            self._blame(Fault(kind="stuck", what=str(stuck)))
        finally:
            self.world.board.end(self.seed)
        return self.faults

    def _insist_on_it(self) -> None:
        """Try again what failed, as people do, and look at what arrived."""
        for _ in range(TRIED):
            state = self._reloaded().state
            if state == W.READY:
                self._blame(*self._missing())
            if state != W.FAILED:
                return
            self._ask("retry", "POST", f"/workspaces/{self._id}/retry", None)
            self._settle()
            self._judge("retry transfer")

    def _missing(self) -> list[Fault]:
        """Return what neither arrived nor was said to be left.

        Once a discard had its deletion reverted, a file is missing and no more: that
        is left, and counted.
        """
        transfer = from_database(lambda: Transfer.objects.get(workspace=self._id))
        told = str(
            from_database(
                lambda: list(transfer.conflicts.values_list("path", "sentence"))
            )
        )
        if transfer.counts["left"].get("missing"):
            told += "".join(edit.path for edit in self.edits if edit.kind == "deleted")
        with self.world.servers.calm.at_work():
            return [
                Fault(kind="lost", what=f"{edit.kind} was not transferred")
                for edit in self.edits
                if edit.path and edit.path not in told and not self._arrived(edit)
            ]

    def _arrived(self, edit: Edit) -> bool:
        assert self.workspace is not None
        path = self.workspace.path / edit.path
        if edit.kind == "deleted":
            return not os.path.lexists(path)
        return edit.token in text_of(path)

    def _interruption(self, name: str) -> tuple[str, str, str, Any] | None:
        """Return a change of mind."""
        return ("abort", "POST", "", None)

    def _ask(
        self, name: str, method: str, path: str, body: Any, *, times: int = 1
    ) -> None:
        if name == "abort":
            if self.workspace is None:
                return
            path = f"/workspaces/{self._id}/transfer/abort"
        super()._ask(name, method, path, body, times=times)
