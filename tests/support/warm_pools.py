"""A warm pool with members, made without a far side."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.pools import queries as pool_queries
from provisioner.pools.actions import pool_create
from provisioner.pools.models import Pool
from provisioner.pools.sweeps import sweep_pools
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.factories import UserFactory


def make_pool(
    template: Template,
    owner: User,
    *,
    size: int,
    purpose: str = "ci",
    site: Site | None = None,
) -> Pool:
    admin = User.objects.filter(is_staff=True).first() or UserFactory.create(
        is_staff=True
    )
    return pool_create(
        by=admin, template=template, site=site, purpose=purpose, owner=owner, size=size
    )


def finish(member: Workspace, *, seconds: float = 2.0) -> Workspace:
    """Let a member become ready as its last step would have it."""
    operation = member.operations.get(state=Operation.State.RUNNING)
    now = timezone.now()
    operation.steps.update(
        state=Step.State.DONE,
        attempt=1,
        started_at=now - dt.timedelta(seconds=seconds),
        ended_at=now,
    )
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    set_workspace_state(member, Workspace.State.READY)
    return member


def fail(member: Workspace, *, code: str = "aggregate_full") -> Workspace:
    """Let what is under way with a member fail as a step would have it."""
    operation = member.operations.get(state=Operation.State.RUNNING)
    engine_states.end_operation(
        operation, Operation.State.FAILED, code=code, message=code
    )
    engine_states.skip_waiting_steps(operation)
    set_workspace_state(member, Workspace.State.FAILED, code=code, message=code)
    return member


def filled(pool: Pool) -> list[Workspace]:
    """Sweep until the pool makes no more, with each member ready at once."""
    made: list[Workspace] = []
    while True:
        sweep_pools(timestamp=0)
        new = pool_queries.members_of(pool).filter(state=Workspace.State.PROVISIONING)
        if not new:
            return made
        made += [finish(member) for member in new]
