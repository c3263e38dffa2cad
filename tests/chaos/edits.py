"""Sentinel edits: one of each kind, each with content that is nowhere else."""

from __future__ import annotations

import os
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from P4 import P4, P4Exception

from provisioner.workspaces.models import Workspace
from tests.chaos.people import Person
from tests.chaos.witness import Perforce


@dataclass(frozen=True, kw_only=True)
class Edit:
    """`path` is where its content is in the tree, "" where it is in a shelf alone.

    `action` is how Perforce has it opened, "" where it has not.
    """

    kind: str
    token: str
    path: str = ""
    action: str = ""


class Desk:
    """A person at work in one workspace."""

    def __init__(
        self, person: Person, workspace: Workspace, *, p4: Perforce, seed: int
    ) -> None:
        self.person = person
        self.root: Path = workspace.path
        self.client = workspace.client_name
        self.p4 = p4
        self.seed = seed
        self.edits: list[Edit] = []

    def work(self) -> None:
        """Make one edit of each kind; all of them are on disk and known afterwards."""
        self._shelve("src/file0.txt")
        self._open_and_change("src/file1.txt")
        self._change_unopened("src/file2.txt")
        self._leave_untracked("src/notes of mine.txt")
        self._add("src/new.txt")
        self._delete("src/file3.txt")
        self._move("src/file4.txt", to="src/moved.txt")

    def _token(self, kind: str) -> str:
        return f"sentinel {self.seed} {kind}\n"

    def _run(self, *command: str) -> list[Any]:
        """Run a command until it has been answered; a repeated one changes nothing."""

        def use(p4: P4) -> list[Any]:
            p4.exception_level = 1
            return list(p4.run(*command))

        return self.p4.insist(use, client=self.client)

    def _write(self, name: str, text: str) -> None:
        path = self.root / name
        if path.exists():
            path.chmod(0o644)
        path.write_text(text)
        if os.geteuid() == 0:
            os.chown(path, self.person.uid, self.person.gid)

    def _note(self, kind: str, *, path: str = "", action: str = "") -> None:
        self.edits.append(
            Edit(kind=kind, token=self._token(kind), path=path, action=action)
        )

    def _open_and_change(self, name: str) -> None:
        self._run("edit", str(self.root / name))
        self._write(name, self._token("opened"))
        self._note("opened", path=name, action="edit")

    def _change_unopened(self, name: str) -> None:
        self._write(name, self._token("changed"))
        self._note("changed", path=name)

    def _leave_untracked(self, name: str) -> None:
        self._write(name, self._token("untracked"))
        self._note("untracked", path=name)

    def _add(self, name: str) -> None:
        self._write(name, self._token("added"))
        self._run("add", str(self.root / name))
        self._note("added", path=name, action="add")

    def _delete(self, name: str) -> None:
        self._run("delete", str(self.root / name))
        (self.root / name).unlink(missing_ok=True)
        self._note("deleted", path=name, action="delete")

    def _move(self, name: str, *, to: str) -> None:
        self._run("edit", str(self.root / name))

        def use(p4: P4) -> None:
            p4.exception_level = 1
            if not p4.run("opened", str(self.root / to)):
                p4.run("move", str(self.root / name), str(self.root / to))

        self.p4.insist(use, client=self.client)
        (self.root / name).unlink(missing_ok=True)
        self._write(to, self._token("moved"))
        self._note("moved", path=to, action="move/add")

    def _shelve(self, name: str) -> None:
        def use(p4: P4) -> None:
            p4.exception_level = 1
            p4.run("edit", str(self.root / name))
            self._write(name, self._token("shelved"))
            change = p4.fetch_change()
            change["Description"] = f"shelved by {self.seed}"
            number = p4.save_change(change)[0].split()[1]
            # An earlier try, cut short, may have left it in another change.
            p4.run("reopen", "-c", number, str(self.root / name))
            p4.run("shelve", "-f", "-c", number)
            p4.run("revert", "-c", number, str(self.root / name))

        self.p4.insist(use, client=self.client)
        self._note("shelved")

    # --- what is there now

    def opened(self) -> dict[str, str]:
        """Return {path below the root: action}."""

        def use(p4: P4) -> dict[str, str]:
            p4.exception_level = 1
            return {
                file["clientFile"].removeprefix(f"//{self.client}/"): file["action"]
                for file in p4.run("opened", "-C", self.client)
            }

        return self.p4.insist(use, client=self.client)

    def shelved_contents(self) -> str:
        """Return what all shelves of this client have, and which files they delete."""

        def use(p4: P4) -> str:
            p4.exception_level = 1
            found = []
            for change in p4.run("changes", "-s", "shelved", "-c", self.client):
                number = change["change"]
                described = p4.run("describe", "-S", "-s", number)[0]
                found += [
                    f"{action} {path}"
                    for path, action in zip(
                        described.get("depotFile", []),
                        described.get("action", []),
                        strict=False,
                    )
                ]
                found += [
                    part if isinstance(part, str) else ""
                    for part in p4.run("print", "-q", f"//...@={number}")
                ]
            return "\n".join(found)

        return self.p4.insist(use)

    def archived_contents(self, rescue_root: Path, workspace: Workspace) -> str:
        """Return what all complete archives of this workspace have."""
        found = []
        for directory in rescue_root.glob(
            f"{self.person.username}/{workspace.name}-*{workspace.tag.hex[:6]}*"
        ):
            found.append((directory / "manifest.json").read_text(errors="replace"))
            with tarfile.open(directory / "work.tar") as tar:
                for member in tar.getmembers():
                    file = tar.extractfile(member) if member.isfile() else None
                    if file is not None:
                        found.append(file.read().decode(errors="replace"))
        return "\n".join(found)


def text_of(path: Path) -> str:
    """Return a file's text, "" where there is none."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


__all__ = ["Desk", "Edit", "P4Exception", "text_of"]
