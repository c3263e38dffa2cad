"""The context of a step of a run: what is measured, and who works on files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from provisioner.engine.results import StepResult
from provisioner.gateways import registry
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

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """Have a directory on this host that belongs to whoever works on files."""
        with tempfile.TemporaryDirectory(
            prefix="cloneyard-", ignore_cleanup_errors=True
        ) as made:
            if os.geteuid() == 0:
                os.chown(made, self.row.uid, self.row.gid)
            yield Path(made)


@dataclass(frozen=True)
class DataMade(StepResult):
    """Where the files are that are measured with."""

    step = "data"
    top: str
