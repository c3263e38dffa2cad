"""What a run does before anything is measured."""

from __future__ import annotations

from functools import partial

from provisioner.gateways.hosts.run_as import run_as
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.lib.refusals import StepRefused
from provisioner.qualification.models import QualificationRun
from provisioner.qualification.steps.run import DataMade, QualificationStep
from provisioner.sandboxes.models import Sandbox


def ensure_target(run: QualificationStep) -> None:
    """Check that what answers may be measured, and note where its log ends.

    Raises: StepRefused.
    """
    row = run.row
    require_allowed(row)
    gateway = run.perforce
    info = gateway.get_info()
    sandbox = row.sandbox
    if sandbox is not None:
        if info.server_id != sandbox.server_id:
            raise StepRefused(
                f"What answers at {sandbox.p4port} is {info.server_id or 'nameless'}, "
                "not the sandbox. Nothing was measured.",
                code="another_server_answers",
            )
        for name, value in (("server", "3"), ("track", "1")):
            gateway.benchmarks.set(name, value)
    if row.log_start is None:
        end = gateway.benchmarks.log_end()
        with run.writing():
            QualificationRun.objects.filter(pk=row.pk).update(
                log_start=end, release=info.version[:200]
            )


def require_allowed(row: QualificationRun) -> None:
    """Refuse what must not be measured any more. Raises: StepRefused."""
    if row.sandbox is not None:
        row.sandbox.refresh_from_db(fields=["state"])
        if row.sandbox.state != Sandbox.State.READY:
            raise StepRefused(
                f"The sandbox {row.sandbox.name} is not ready any more. Nothing was "
                "measured since.",
                code="sandbox_not_ready",
            )
        return
    row.perforce_server.refresh_from_db(fields=["is_scratch"])
    if not row.perforce_server.is_scratch:
        raise StepRefused(
            f"{row.perforce_server.name} is not marked as scratch any more. Nothing "
            "was measured since.",
            code="server_not_scratch",
        )


def ensure_data(run: QualificationStep) -> DataMade:
    """Ensure that the files of the seed are at the server."""
    row, gateway = run.row, run.perforce
    require_allowed(row)
    run.remove_scratch()
    top = f"//{_depot(gateway)}/cloneyard-measures/{row.seed}-{row.size}-{row.files}"
    if gateway.benchmarks.count(f"{top}/main") < row.files:
        client = f"cyq{row.pk}data"
        with run.scratch() as root:
            run_as(
                run.owner,
                gateway.benchmarks.add,
                client,
                top=top,
                root=str(root / "data"),
                files=row.files,
                size=row.size,
                seed=row.seed,
                on_progress=partial(_made, run),
            )
        gateway.benchmarks.delete_client(client)
    return DataMade(top=top)


def _depot(gateway: PerforceGateway) -> str:
    """Return the local depot for the files, the first by name. Raises: StepRefused."""
    depots = gateway.archives.depots()
    local = [depot.name for depot in depots if depot.kind == "local"]
    if not local:
        raise StepRefused(
            "The server has no local depot for the files to measure with.",
            code="no_local_depot",
        )
    return min(local)


def _made(run: QualificationStep, files: int) -> None:
    run.progress(
        "Making files", done=files, total=run.row.files, unit="files", phase="data"
    )
