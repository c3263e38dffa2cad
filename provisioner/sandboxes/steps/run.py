"""One attempt at a step of a sandbox: its volumes, its places and its program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from provisioner.engine.results import StepResult, find_result
from provisioner.engine.step_run import StepRun
from provisioner.gateways import registry
from provisioner.gateways.errors import Refused
from provisioner.gateways.hosts.p4d import P4d
from provisioner.gateways.owners import Ids
from provisioner.gateways.perforce.types import PerforceAccount
from provisioner.lib.refusals import StepRefused
from provisioner.sandboxes.models import Role, Sandbox, SandboxPlace, SandboxVolume
from provisioner.sandboxes.purposes import recipe_of


class SandboxRun(StepRun):
    """One attempt at a step of a sandbox."""

    @property
    def sandbox(self) -> Sandbox:
        sandbox: Sandbox = self.operation.subject.sandbox
        return sandbox

    @cached_property
    def volumes(self) -> list[SandboxVolume]:
        """Its volumes in the order of snapshots."""
        rows = list(self.sandbox.volumes.prefetch_related("places"))
        for row in rows:
            row.sandbox = self.sandbox
        return rows

    def path_of(self, place: SandboxPlace, volume: SandboxVolume) -> Path:
        """Return where this host sees a part of the copied server."""
        return self.visible_root(volume.junction_path) / place.path

    def p4d(self, *, ignores_case: bool = False) -> P4d:
        """Return the program with the places of this sandbox."""
        paths = {
            place.role: self.path_of(place, volume)
            for volume in self.volumes
            for place in volume.places.all()
        }
        root = paths[Role.DB]
        return replace(
            self.program,
            root=root,
            journal=paths[Role.JOURNAL],
            log=paths.get(Role.LOG, root / "log"),
            ignores_case=ignores_case,
        )

    @cached_property
    def original(self) -> Checked:
        """What the original said of itself when the sandbox was made."""
        if found := self.find_result(Checked):
            return found
        made = self.sandbox.operations.filter(kind=recipe_of(self.sandbox).operation)
        found = find_result(made.latest("pk"), Checked)
        assert found is not None
        return found

    @property
    def owner(self) -> Ids:
        """Who runs p4d on its host, and owns its files there."""
        return Ids(uid=self.sandbox.host.uid, gid=self.sandbox.host.gid)

    @property
    def program(self) -> P4d:
        return program_of(self.sandbox)


def program_of(sandbox: Sandbox) -> P4d:
    """Return a sandbox's program without places: for what needs none."""
    nowhere = Path("/nonexistent")
    return P4d(
        program=sandbox.p4d_path,
        root=nowhere,
        journal=nowhere,
        log=nowhere,
        uid=sandbox.host.uid,
        gid=sandbox.host.gid,
        tag=str(sandbox.tag),
    )


@dataclass(frozen=True)
class Checked(StepResult):
    """What the original says of itself."""

    step = "server"
    release: str
    server_id: str
    is_case_sensitive: bool


@contextlib.contextmanager
def refusing(code: str) -> Iterator[None]:
    """End the step under a code with what is refused in the block."""
    try:
        yield
    except Refused as error:
        raise StepRefused(error.sentence, code=code) from error


def account_at(run: SandboxRun) -> PerforceAccount:
    """Return our account at the original as one at the sandbox's server."""
    account = registry.perforce_account(run.server)
    return replace(account, port=run.sandbox.p4port, fingerprint="")
