"""The server of a sandbox: started, upgraded, and asked whether it answers."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace

from provisioner.gateways import registry
from provisioner.gateways.errors import Busy, GatewayError
from provisioner.gateways.hosts.p4d import P4d
from provisioner.gateways.perforce.types import ServerInfo
from provisioner.lib.refusals import StepRefused
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.steps.run import SandboxRun, account_at, refusing

ANSWERS_WITHIN_SECONDS = 60.0
LOOKS_EVERY_SECONDS = 0.3
LONGEST_UPGRADE_SECONDS = 24 * 3600.0


def ensure_started(run: SandboxRun) -> None:
    """Ensure that the chosen p4d serves the copy, as the host's user.

    Raises: StepRefused in its own words.
    """
    sandbox = run.sandbox
    p4d = run.p4d(ignores_case=not run.original.is_case_sensitive)
    if p4d.processes():
        if _answer(run) is not None:
            return
        p4d.stop()
    if sandbox.release != run.original.release:
        _upgrade(run, p4d)
    with refusing("p4d_did_not_start"):
        p4d.start(sandbox.p4port)


def _upgrade(run: SandboxRun, p4d: P4d) -> None:
    """Upgrade the database, and record how long that took.

    One that is repeated goes on where it was interrupted, so its time would be wrong.
    """
    rows = Sandbox.with_retired.filter(pk=run.sandbox.pk)
    with run.writing():
        # That of an original that could not be asked is not known: "".
        is_first = bool(run.original.release) and rows.filter(upgraded_from="").update(
            upgraded_from=run.original.release
        )
    began = time.monotonic()
    with refusing("upgrade_failed"):
        p4d.upgrade(within_seconds=LONGEST_UPGRADE_SECONDS)
    if is_first:
        with run.writing():
            rows.update(upgrade_seconds=time.monotonic() - began)


def ensure_answers(run: SandboxRun) -> None:
    """Wait for `p4 info`, and check that it is the sandbox that answers.

    Raises: StepRefused, Busy (not within a minute).
    """
    ends = time.monotonic() + ANSWERS_WITHIN_SECONDS
    while (info := _answer(run)) is None:
        if not run.program.processes():
            raise StepRefused(
                "The sandbox's server ended by itself. Its log says why.",
                code="p4d_ended",
            )
        if time.monotonic() > ends:
            raise Busy(
                f"Nothing answers at {run.sandbox.p4port} yet.",
                system="perforce",
                operation="info",
            )
        time.sleep(LOOKS_EVERY_SECONDS)
    if info.server_id != run.sandbox.server_id or info.replica_of:
        run.program.stop()
        raise StepRefused(
            f"What answers at {run.sandbox.p4port} is {info.server_id or 'nameless'}, "
            "not the sandbox. It was stopped.",
            code="another_server_answers",
        )


def _answer(run: SandboxRun) -> ServerInfo | None:
    """Return what the sandbox's server says, None if it does not answer yet.

    No password is sent: `p4 info` needs none.
    """
    account = replace(account_at(run), password="")
    with contextlib.suppress(GatewayError):
        return registry.perforce_as(account).get_info()
    return None
