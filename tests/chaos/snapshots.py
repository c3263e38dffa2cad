"""A workspace that is compared with a snapshot, taken back from it, restored to it."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from provisioner.engine.models import Operation
from provisioner.gateways.snapshot_directories import SNAPSHOTS
from provisioner.lib.names import tag_in
from provisioner.workspace_snapshots.models import PREFIX, WorkspaceSnapshot
from provisioner.workspace_snapshots.sweeps import follow_site, read_clients
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from tests.chaos.edits import text_of
from tests.chaos.judge import Fault, orphan
from tests.chaos.patience import from_database, insist
from tests.chaos.sweeping import sweep_now
from tests.chaos.trial import SETTLED_WITHIN_SECONDS, Stuck, Trial

W = Workspace.State
OURS = (".p4config", ".cloneyardignore")
CHANGED, UNTRACKED, NEWER = "src/file2.txt", "src/notes.txt", "src/newer.txt"
TRIED = 8
POLL_EVERY_SECONDS = 0.5


class SnapshotTrial(Trial):
    """A workspace with a snapshot, from its beginning to its end."""

    def run(self) -> list[Fault]:
        """Work, have a snapshot taken, work on, and go back to it."""
        try:
            body = {"template": self.world.templates[0], "name": self.name}
            self._disturbed("create", "POST", "/workspaces", body)
            if self._reloaded().state == W.READY:
                self._go_back()
            self._remove()
        except Stuck as stuck:
            self._blame(Fault(kind="stuck", what=str(stuck)))
        finally:
            self.world.board.end(self.seed)
        return self.faults

    def _go_back(self) -> None:
        self._write({CHANGED: "then", UNTRACKED: "then"})
        snapshot = self._taken()
        then = self._tree()
        self._write({CHANGED: "now", NEWER: "now"})
        with self.world.servers.calm.at_work():
            (self._root / UNTRACKED).unlink()
        path, choice = f"/workspaces/{self._id}/snapshots", {"snapshot": snapshot.pk}

        compared = self._insist("compare", f"{path}/compare", choice, self._changed)
        said = str(compared.findings)
        for name in (CHANGED, UNTRACKED, NEWER):
            if name not in said:
                self._blame(Fault(kind="lost", what=f"comparison without {name}"))
        taken = {**choice, "path": CHANGED}
        self._insist("take back", f"{path}/take-back", taken, self._changed)
        if text_of(self._root / CHANGED) != self._token("then"):
            self._blame(Fault(kind="lost", what=f"{CHANGED} was not taken back"))
        self._insist("restore snapshot", f"{path}/restore", choice, self._kept)
        now = self._tree()
        if now != then:
            named = sorted(n for n in now.keys() | then if now.get(n) != then.get(n))
            self._blame(Fault(kind="lost", what=f"not as it was: {named}"))
        self._recorded()

    # --- a request until it succeeds

    def _insist(
        self,
        name: str,
        path: str,
        body: dict[str, Any],
        look: Callable[[], list[Fault]],
    ) -> Operation:
        """Ask with trouble, and without it until it succeeds; look after each.

        Raises: Stuck.
        """
        kind = KINDS[name]
        for attempt in range(TRIED):
            if attempt:
                self._ask(name, "POST", path, body)
                self._settle()
                self._judge(f"{name} again")
            else:
                self._disturbed(name, "POST", path, body)
            with self.world.servers.calm.at_work():
                self._blame(*look())
            done = Operation.objects.filter(subject__workspace=self._id, kind=kind)
            last = from_database(done.order_by("-pk").first)
            state = last.state if last else "not begun"
            self.world.outcomes[f"{name}: {state}"] += 1
            if last is not None and state == Operation.State.SUCCEEDED:
                return last
        why = last.status_message if last else ""
        raise Stuck(f"{name} does not succeed: {state} {why}")

    def _interruption(self, name: str) -> tuple[str, str, str, Any] | None:
        return None

    # --- its files

    @property
    def _root(self) -> Path:
        assert self.workspace is not None
        return self.workspace.path

    def _token(self, when: str) -> str:
        return f"sentinel {self.seed} {when}\n"

    def _write(self, files: dict[str, str]) -> None:
        with self.world.servers.calm.at_work():
            for name, when in files.items():
                path = self._root / name
                path.unlink(missing_ok=True)
                path.write_text(self._token(when))
                os.chown(path, self.person.uid, self.person.gid)

    def _tree(self) -> dict[str, bytes]:
        with self.world.servers.calm.at_work():
            return {
                str(path.relative_to(self._root)): path.read_bytes()
                for path in sorted(self._root.rglob("*"))
                if path.is_file()
                and SNAPSHOTS not in path.parts
                and path.name not in OURS
                and ".newer-" not in path.name
            }

    def _changed(self) -> list[Fault]:
        """Return what is lost of the newer state, which only a restore replaces."""
        texts = [
            text_of(path)
            for path in self._root.rglob("*.txt*")
            if SNAPSHOTS not in path.parts
        ]
        return self._lost(texts)

    def _kept(self) -> list[Fault]:
        """Return what of the newer state is neither there nor in a snapshot of it."""
        ontap = self.world.judge.ontap
        texts = [text_of(path) for path in self._root.rglob("*.txt*")]
        for name, record in ontap.versions(self._volume_uuid).items():
            if name.startswith(f"{PREFIX}before-restore"):
                texts += [
                    found.decode(errors="replace")
                    for found in ontap.files_of(record["uuid"]).values()
                ]
        return self._lost(texts)

    def _lost(self, texts: list[str]) -> list[Fault]:
        newer = self._token("now")
        if sum(newer in text for text in texts) >= 2:
            return []
        return [Fault(kind="lost", what="newer files are nowhere")]

    # --- its snapshots

    @property
    def _volume_uuid(self) -> str:
        assert self.workspace is not None
        volumes = self.world.judge.ontap.volumes(
            tag=tag_in(self.workspace.volume_comment)
        )
        return str(volumes[0]["uuid"])

    def _taken(self) -> WorkspaceSnapshot:
        """Take a snapshot as ONTAP's schedule does, and wait until it is known.

        Raises: Stuck.
        """
        name = f"{PREFIX}hourly.{dt.datetime.now(dt.UTC):%Y-%m-%d_%H%M}"
        path = f"/api/storage/volumes/{self._volume_uuid}/snapshots"
        ontap = self.world.judge.ontap

        def take() -> None:
            if name not in ontap.snapshots(self._volume_uuid):
                ontap.request("POST", f"{path}?return_timeout=15", {"name": name})

        insist(take, on=(OSError,))
        found: WorkspaceSnapshot = self._until(
            lambda: WorkspaceSnapshot.objects.filter(
                workspace=self._id, name=name, reading__isnull=False
            ).first()
        )
        return found

    def _recorded(self) -> None:
        """Check that there is a row for each snapshot, and the other way round."""

        def is_so() -> bool | None:
            there = self.world.judge.ontap.snapshots(self._volume_uuid)
            ours = {name for name in there if name.startswith(PREFIX)}
            rows = WorkspaceSnapshot.objects.filter(workspace=self._id)
            return ours == set(rows.values_list("name", flat=True)) or None

        try:
            self._until(is_so)
        except Stuck:
            self._blame(orphan("rows of snapshots and those in ONTAP differ"))

    def _until(self, ask: Callable[[], Any]) -> Any:
        """Return what is there after some sweeps. Raises: Stuck."""
        site_id = self.world.judge.site.pk
        ends = time.monotonic() + SETTLED_WITHIN_SECONDS
        while not (found := from_database(ask)):
            if time.monotonic() > ends:
                raise Stuck("the snapshot of the workspace is not followed")
            sweep_now(follow_site, site_id=site_id)
            sweep_now(read_clients, site_id=site_id)
            time.sleep(POLL_EVERY_SECONDS)
        return found


KINDS = {
    "compare": WorkspaceOperation.COMPARE,
    "take back": WorkspaceOperation.TAKE_BACK,
    "restore snapshot": WorkspaceOperation.RESTORE_SNAPSHOT,
}
