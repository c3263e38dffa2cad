"""A client with files, and what a person does at it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.perforce.types import (
    ClientSpec,
    OpenedFile,
    ShelveReport,
)
from tests.support.perforce_scene import PerforceScene


@dataclass
class Desk:
    """A client with files, and what a person does at it."""

    scene: PerforceScene
    spec: ClientSpec
    change: int

    @property
    def root(self) -> Path:
        return Path(self.spec.root)

    def path(self, name: str) -> str:
        escaped = name
        for character, code in (("%", "%25"), ("@", "%40"), ("#", "%23"), ("*", "%2A")):
            escaped = escaped.replace(character, code)
        return f"{self.scene.folder}/{escaped}"

    def p4(self, *command: str) -> None:
        with self.scene.at_the_shell(self.spec.name) as shell:
            shell.run(*command)

    def write(self, name: str, content: bytes) -> None:
        (self.root / name).write_bytes(content)

    def edit(self, name: str, content: bytes, *, change: str = "default") -> None:
        self.p4("edit", "-c", change, self.path(name))
        self.write(name, content)

    def add(self, name: str, content: bytes, *, change: str = "default") -> None:
        self.write(name, content)
        self.p4("add", "-f", "-c", change, str(self.root / name))

    def move(self, old: str, new: str) -> None:
        self.p4("edit", self.path(old))
        self.p4("move", self.path(old), self.path(new))

    def opened(self) -> list[OpenedFile]:
        return self.scene.gateway.changes.list_opened(self.spec.name)

    def shelve(self) -> ShelveReport:
        return self.scene.gateway.shelves.shelve_opened(
            self.spec.name, workspace="main-1"
        )

    def shelved(self, change: int) -> dict[str, str]:
        files = self.scene.gateway.shelves.list_files(change)
        prefix = f"{self.scene.folder}/"
        return {f.depot_file.removeprefix(prefix): f.action for f in files}

    def printed(self, name: str, *, change: int) -> bytes:
        with self.scene.at_the_shell(self.spec.name) as shell:
            reply = shell.run("print", "-q", f"{self.path(name)}@={change}")
        return "".join(reply.texts).encode()

    def tree(self) -> dict[str, bytes | str]:
        return {
            str(path.relative_to(self.root)): (
                os.readlink(path) if path.is_symlink() else path.read_bytes()
            )
            for path in sorted(self.root.rglob("*"))
            if path.is_symlink() or path.is_file()
        }
