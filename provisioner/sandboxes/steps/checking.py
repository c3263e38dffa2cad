"""What is checked before anything is cloned."""

from __future__ import annotations

from provisioner.gateways.hosts.p4d import is_port_free
from provisioner.gateways.perforce.releases import p4d_release_in
from provisioner.lib.refusals import StepRefused
from provisioner.lib.releases import is_older
from provisioner.sandboxes.steps.run import Checked, SandboxRun, refusing


def ensure_server_fits(run: SandboxRun) -> Checked:
    """Ask the original which release and ServerID it has.

    Raises: StepRefused (p4d older than its database, or its ServerID).
    """
    info = run.perforce.get_info()
    sandbox, server = run.sandbox, run.server
    release = p4d_release_in(info.version)
    require_not_older(run, release)
    if info.server_id and info.server_id.lower() == sandbox.server_id.lower():
        raise StepRefused(
            f"{server.name} has the ServerID {info.server_id}. Nothing was cloned. "
            "Give the sandbox one of its own.",
            code="server_id_of_a_server",
        )
    return Checked(release, info.server_id, info.is_case_sensitive)


def require_not_older(run: SandboxRun, release: str) -> None:
    """Refuse a p4d older than the original's release; "" is not known.

    Raises: StepRefused.
    """
    if is_older(run.sandbox.release, release):
        raise StepRefused(
            f"{run.server.name} runs {release}. A p4d {run.sandbox.release} cannot "
            "read its database. Nothing was cloned. Choose a newer version.",
            code="p4d_too_old",
        )


def ensure_host_fits(run: SandboxRun) -> None:
    """Check on the host that p4d is there and that nothing has the port.

    Raises: StepRefused.
    """
    sandbox = run.sandbox
    require_program(run)
    is_ours = bool(run.program.processes())
    if not is_ours and not is_port_free(sandbox.host.address, sandbox.port):
        raise StepRefused(
            f"Something else answers at {sandbox.p4port}. Nothing was cloned. Choose "
            "another port.",
            code="port_in_use",
        )


def require_program(run: SandboxRun) -> None:
    """Check that there is a p4d of the chosen release at its path.

    Raises: StepRefused.
    """
    sandbox = run.sandbox
    with refusing("p4d_missing"):
        found = run.program.release()
    if found != sandbox.release:
        raise StepRefused(
            f"{sandbox.p4d_path} at {sandbox.host.name} is {found}, not "
            f"{sandbox.release}. Nothing was cloned. Correct the path of the version.",
            code="p4d_of_another_release",
        )
