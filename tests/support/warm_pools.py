"""A warm pool with members, made without a far side."""

from __future__ import annotations

from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.workspaces import actions, pools, states
from provisioner.workspaces.models import Operation, Pool, Step, Template, Workspace
from provisioner.workspaces.sweeps.pools import sweep_pools
from tests.support.factories import UserFactory


def make_pool(
    template: Template, owner: User, *, size: int, purpose: str = "ci"
) -> Pool:
    admin = User.objects.filter(is_staff=True).first() or UserFactory(is_staff=True)
    return actions.pool_create(
        by=admin, template=template, purpose=purpose, owner=owner, size=size
    )


def finish(member: Workspace, *, seconds: float = 2.0) -> Workspace:
    """Let a member become ready as its last step would have it."""
    operation = member.operations.get(state=Operation.State.RUNNING)
    now = timezone.now()
    operation.steps.update(
        state=Step.State.DONE,
        attempt=1,
        started_at=now - timezone.timedelta(seconds=seconds),
        ended_at=now,
    )
    states.end_operation(operation, Operation.State.SUCCEEDED)
    states.set_workspace_state(member, Workspace.State.READY)
    return member


def fail(member: Workspace, *, code: str = "aggregate_full") -> Workspace:
    """Let what is under way with a member fail as a step would have it."""
    operation = member.operations.get(state=Operation.State.RUNNING)
    states.end_operation(operation, Operation.State.FAILED, code=code, message=code)
    states.skip_waiting_steps(operation)
    states.set_workspace_state(member, Workspace.State.FAILED, code=code, message=code)
    return member


def filled(pool: Pool) -> list[Workspace]:
    """Sweep until the pool makes no more, with each member ready at once."""
    made: list[Workspace] = []
    while True:
        sweep_pools(timestamp=0)
        new = pools.members_of(pool).filter(state=Workspace.State.PROVISIONING)
        if not new:
            return made
        made += [finish(member) for member in new]
