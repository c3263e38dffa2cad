"""Having the server believe what a snapshot has, without keeping others waiting."""

from __future__ import annotations

from collections.abc import Callable

from provisioner.catalog.pins import goes_in_batches, parts_of, pinned_have
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import HaveList, LockUse
from provisioner.lib.refusals import StepRefused
from provisioner.workspaces.models import Workspace


def flush_towards_pin(
    perforce: PerforceGateway,
    workspace: Workspace,
    *,
    on_command: Callable[[LockUse], None] | None = None,
) -> HaveList:
    """Flush to the snapshot's change, a large one in batches; return the have list."""
    pin = workspace.snapshot
    return perforce.files.flush_towards(
        workspace.client_name,
        change=pin.change,
        parts=parts_of(pin),
        wanted=pinned_have(pin),
        in_batches=goes_in_batches(pin.have_count),
        on_command=on_command,
    )


def flush_to_pin(
    perforce: PerforceGateway,
    workspace: Workspace,
    *,
    on_command: Callable[[LockUse], None] | None = None,
) -> HaveList:
    """Have the have list that the snapshot is pinned to.

    Raises: StepRefused where a flush does not lead there.
    """
    pin = workspace.snapshot
    have = flush_towards_pin(perforce, workspace, on_command=on_command)
    if have != pinned_have(pin):
        raise StepRefused(
            f"After the flush to change {pin.change} the have list has {have.count:,} "
            f"files and is not the {pin.have_count:,} of the snapshot {pin.name}. The "
            "depot or the view changed under the pin: build the template again.",
            code="have_differs_from_pin",
        )
    return have
