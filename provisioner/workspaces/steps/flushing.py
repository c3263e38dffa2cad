"""Having the server believe what a snapshot has, without keeping others waiting."""

from __future__ import annotations

from collections.abc import Callable

from provisioner.catalog.pins import goes_in_batches, parts_of
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
    """Flush to the snapshot's change, and return what the have list is then.

    A large one is flushed in batches, also where an earlier attempt ended half-way;
    where that does not lead there, because a view is not made of directories or the
    client has files that the change has not, at once.
    """
    pin = workspace.snapshot
    have = perforce.files.have_list(workspace.client_name)
    ways = [True, False] if goes_in_batches(pin.have_count) else [False]
    for in_batches in ways:
        if (have.count, have.digest) != (pin.have_count, pin.have_digest):
            perforce.files.flush(
                workspace.client_name,
                change=pin.change,
                parts=parts_of(pin),
                in_batches=in_batches,
                on_command=on_command,
            )
            have = perforce.files.have_list(workspace.client_name)
    return have


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
    if (have.count, have.digest) != (pin.have_count, pin.have_digest):
        raise StepRefused(
            f"After the flush to change {pin.change} the have list has {have.count:,} "
            f"files and is not the {pin.have_count:,} of the snapshot {pin.name}. The "
            "depot or the view changed under the pin: build the template again.",
            code="have_differs_from_pin",
        )
    return have
