"""Extend, start again, retire and retry a sandbox."""

from __future__ import annotations

import datetime as dt

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.engine.models import Operation
from provisioner.engine.starting import start_operation
from provisioner.engine.states import cancel_operation
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest, StateChanged
from provisioner.sandboxes import refusals
from provisioner.sandboxes.models import Sandbox, SandboxOperation
from provisioner.sandboxes.purposes import recipe_of
from provisioner.sandboxes.queries import (
    RETIREMENTS,
    can_change_sandbox,
    is_served,
    policy_of,
)
from provisioner.sandboxes.states import set_sandbox_state


def sandbox_extend(*, by: User, sandbox: Sandbox, hours: int) -> Sandbox:
    """Let a sandbox live this many hours from now.

    Raises: NotAllowed, InvalidRequest, NoSandboxesForYou, LeaseTooLong, SandboxMoving.
    """
    permissions.require(can_change_sandbox(by, sandbox))
    policy = policy_of(by)
    if policy is None:
        raise refusals.NoSandboxesForYou
    if hours < 1:
        raise InvalidRequest.at("hours", "Give one hour at least.")
    if hours > policy.longest_hours:
        raise refusals.LeaseTooLong(most=policy.longest_hours)
    ends = clocks.database_now() + dt.timedelta(hours=hours)
    with transaction.atomic():
        changed = (
            Sandbox.objects.filter(pk=sandbox.pk)
            .exclude(state=Sandbox.State.RETIRING)
            .update(expires_at=ends)
        )
        if not changed:
            raise _moving(sandbox)
        sandbox.refresh_from_db(fields=["expires_at"])
        record_event(
            sandbox,
            kind="sandbox_extended",
            message=f"Extended to {ends:%Y-%m-%d %H:%M} UTC.",
            actor=by,
        )
    return sandbox


def sandbox_start(*, by: User, sandbox: Sandbox) -> Operation:
    """Begin to start the server of a stopped sandbox again, on the same clones.

    Raises: NotAllowed, SandboxMoving.
    """
    permissions.require(can_change_sandbox(by, sandbox))
    with transaction.atomic():
        return _again(
            sandbox,
            Sandbox.State.STARTING,
            SandboxOperation.START,
            message="Requested to start its server again.",
            by=by,
        )


def _again(
    sandbox: Sandbox, to: Sandbox.State, kind: str, *, message: str, by: User
) -> Operation:
    try:
        set_sandbox_state(sandbox, to, message=message, actor=by)
    except StateChanged as error:
        raise _moving(sandbox) from error
    return start_operation(kind, about=sandbox, by=by)


def sandbox_retire(
    *, by: User, sandbox: Sandbox, reason: str = "", without_host: bool = False
) -> Operation:
    """Begin to stop a sandbox's server and to destroy all that was made for it.

    It interrupts a creation. A repeated call returns the running operation. Without a
    host that does not answer, what ONTAP has is destroyed; the host ends what is left
    there when its worker is back.

    Raises: NotAllowed, SandboxMoving, SandboxHostAnswers.
    """
    permissions.require(can_change_sandbox(by, sandbox))
    if without_host and is_served(sandbox.host):
        raise refusals.SandboxHostAnswers(host=sandbox.host.name)
    kind = SandboxOperation.ABANDON if without_host else SandboxOperation.RETIRE
    with transaction.atomic():
        locked = Sandbox.with_retired.select_for_update(of=("self",)).get(pk=sandbox.pk)
        running = _running(locked)
        retires = locked.state == Sandbox.State.RETIRING
        if (
            retires
            and running is not None
            and running.kind in (kind, SandboxOperation.ABANDON)
        ):
            return running
        if running is not None:
            cancel_operation(running, message=f"{by} retired the sandbox.")
        if not retires:
            try:
                set_sandbox_state(
                    sandbox,
                    Sandbox.State.RETIRING,
                    message="Requested to retire it.",
                    reason=reason,
                    actor=by,
                )
            except StateChanged as error:
                raise _moving(sandbox) from error
        return start_operation(kind, about=sandbox, by=by)


def sandbox_retry(*, by: User, sandbox: Sandbox) -> Operation:
    """Try again what failed: the creation, a start, or the retirement.

    Raises: NotAllowed, SandboxMoving.
    """
    permissions.require(can_change_sandbox(by, sandbox))
    last = sandbox.operations.first()
    if last is not None and last.kind in RETIREMENTS:
        return sandbox_retire(by=by, sandbox=sandbox)
    if last is not None and last.kind == SandboxOperation.START:
        return sandbox_start(by=by, sandbox=sandbox)
    with transaction.atomic():
        return _again(
            sandbox,
            Sandbox.State.CREATING,
            recipe_of(sandbox).operation,
            message="Requested to try again.",
            by=by,
        )


def _running(sandbox: Sandbox) -> Operation | None:
    return sandbox.operations.filter(state=Operation.State.RUNNING).first()


def _moving(sandbox: Sandbox) -> refusals.SandboxMoving:
    sandbox.refresh_from_db()
    return refusals.SandboxMoving(
        name=sandbox.name, state=sandbox.get_state_display().lower()
    )
