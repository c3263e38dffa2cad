"""Baselines: sandboxes that are measured once they are ready, and retired then."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.engine.starting import start_operation
from provisioner.lib.refusals import InvalidRequest
from provisioner.qualification.actions.running import (
    insert_run,
    parameters_of,
    require_profile,
    require_within_reach,
    run_start,
)
from provisioner.qualification.models import QualificationOperation, QualificationRun
from provisioner.qualification.profiles import BY_CODE, Target
from provisioner.qualification.states import set_run_state
from provisioner.sandboxes.actions.creating import sandbox_create
from provisioner.sandboxes.actions.keeping import sandbox_retire
from provisioner.sandboxes.models import P4dVersion, Sandbox, SandboxHost
from provisioner.sites.models import PerforceServer

S = QualificationRun.State
USUAL_PROFILE = "branchsubmit"
"""By which a sandbox is measured that was requested without a profile."""


def baseline_start(
    *,
    by: User,
    profile: str,
    server: PerforceServer,
    name: str,
    version: P4dVersion,
    host: SandboxHost,
    hours: int,
    is_cold: bool = False,
    note: str = "",
    **given: int | None,
) -> QualificationRun:
    """Request a sandbox, and its measurement by a profile.

    Raises: NotAllowed, InvalidRequest, the refusals of sandboxes and of runs.
    """
    require_profile(profile)
    if BY_CODE[profile].target == Target.TEMPLATE:
        raise InvalidRequest.at("profile", "It is measured with a template.")
    numbers = parameters_of(profile, given)
    with transaction.atomic():
        sandbox = sandbox_create(
            by=by,
            server=server,
            name=name,
            purpose=Sandbox.Purpose.BASELINE,
            version=version,
            host=host,
            hours=hours,
            reason=note,
        )
        require_within_reach(sandbox, hosts=numbers["hosts"])
        return insert_run(
            name=f"{profile} at {sandbox.name}",
            profile=profile,
            perforce_server=server,
            sandbox=sandbox,
            site=sandbox.site,
            owner=by,
            state=S.WAITING,
            is_cold=is_cold,
            note=note,
            **numbers,
        )


def baseline_measure(sandbox: Sandbox) -> None:
    """Begin the run that waits for a sandbox that is ready now.

    One that was requested among other sandboxes, without a profile, is measured by the
    usual one.
    """
    waits = QualificationRun.objects.filter(
        sandbox=sandbox, state__in=(S.WAITING, S.FAILED), log_start__isnull=True
    )
    run = waits.order_by("pk").last()
    if run is None:
        run_start(by=sandbox.owner, profile=USUAL_PROFILE, sandbox=sandbox)
        return
    set_run_state(run, S.RUNNING, message=f"The sandbox {sandbox.name} is ready.")
    start_operation(QualificationOperation.RUN, about=run, by=run.owner)


def baseline_end(run: QualificationRun) -> None:
    """Retire the sandbox of a run that is done, if it was made for that."""
    if run.sandbox is None or run.sandbox.purpose != Sandbox.Purpose.BASELINE:
        return
    if Sandbox.objects.filter(pk=run.sandbox.pk, state=Sandbox.State.READY).exists():
        sandbox_retire(
            by=system_user(),
            sandbox=run.sandbox,
            reason=f"Run {run.pk} has measured it.",
        )


def fail_without_sandbox(run: QualificationRun) -> None:
    """End a run whose sandbox will not be ready by itself any more."""
    sandbox = run.sandbox
    assert sandbox is not None
    if sandbox.state in (Sandbox.State.CREATING, Sandbox.State.READY):
        return
    state = sandbox.get_state_display().lower()
    why = sandbox.status_message
    became = state if sandbox.state == Sandbox.State.FAILED else f"is {state}"
    set_run_state(
        run,
        S.FAILED,
        code="sandbox_not_ready",
        message=" ".join(filter(None, [f"The sandbox {sandbox.name} {became}.", why])),
    )
