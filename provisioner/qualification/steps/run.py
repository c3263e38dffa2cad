"""The context of a step of a run: what is measured, and who works on files."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from provisioner.engine.results import StepResult
from provisioner.gateways import registry
from provisioner.gateways.hosts.scratch import remove_scratch, scratch_directory
from provisioner.gateways.owners import Ids
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.qualification.models import QualificationRun
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.steps.run import SandboxRun

Figures = dict[str, float]


class QualificationStep(SandboxRun):
    """One attempt at a step of a run."""

    @property
    def row(self) -> QualificationRun:
        row: QualificationRun = self.operation.subject.row
        return row

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox that is measured, for profiles that need one."""
        sandbox = self.row.sandbox
        assert sandbox is not None
        return sandbox

    @property
    def work_tag(self) -> str:
        """What marks directories of this run on the host."""
        return f"run-{self.row.pk}"

    @property
    def perforce(self) -> PerforceGateway:
        """The gateway to what is measured: the sandbox, or the scratch server."""
        account = registry.perforce_account(self.row.perforce_server)
        sandbox = self.row.sandbox
        if sandbox is not None:
            registry.require_secret_host(sandbox.host.address, system="perforce")
            account = replace(account, port=sandbox.p4port, fingerprint="")
        return registry.perforce_as(account)

    @property
    def owner(self) -> Ids:
        """Who works on the files of clients."""
        return Ids(uid=self.row.uid, gid=self.row.gid)

    @property
    def top(self) -> str:
        return self.result_of(DataMade).top

    def scratch(self) -> AbstractContextManager[Path]:
        """Have a directory on this host that belongs to whoever works on files."""
        return scratch_directory(self._scratch_tag, self.owner)

    def remove_scratch(self) -> None:
        """Remove what a killed attempt at this step left on this host."""
        remove_scratch(self._scratch_tag, self.owner)

    @property
    def _scratch_tag(self) -> str:
        """With a sandbox it begins with its tag: what is left goes with it."""
        sandbox = self.row.sandbox
        of = self.work_tag if sandbox is None else f"{sandbox.tag}-{self.work_tag}"
        return f"{of}-{self.step.name}"


@dataclass(frozen=True)
class DataMade(StepResult):
    """Where the files are that are measured with."""

    step = "data"
    top: str
