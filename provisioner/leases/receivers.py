"""Reactions of leases to events of workspaces."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.dispatch import receiver

from provisioner.catalog.dependents import Dependent, register_dependent
from provisioner.leases.models import LeasePolicy
from provisioner.leases.queries import Deadline, deadline_of, policy_for, saved_policies
from provisioner.leases.warnings import plan_warnings
from provisioner.lib import clocks
from provisioner.workspaces.events import (
    asks_deadline,
    asks_trash_seconds,
    workspace_restored,
)
from provisioner.workspaces.models import Workspace


@receiver(asks_trash_seconds)
def trash_seconds(workspace: Workspace, **kwargs: Any) -> int:
    """Return how long the policy keeps a workspace in the trash."""
    return policy_for(workspace.template, workspace.purpose).trash_seconds


@receiver(workspace_restored)
def plan_mails_anew(workspace: Workspace, **kwargs: Any) -> None:
    """Plan the mails of its deadline again, by the current policy."""
    policy = policy_for(workspace.template, workspace.purpose)
    plan_warnings(workspace, policy, now=clocks.database_now())


@receiver(asks_deadline)
def deadline(
    workspace: Workspace, now: dt.datetime, known: dict[str, Any], **kwargs: Any
) -> Deadline:
    """Return when and how a workspace ends by its lease. One query for a whole list."""
    policies = known.get("policies") or saved_policies()
    known["policies"] = policies
    return deadline_of(workspace, policies.of_workspace(workspace), now)


register_dependent(
    Dependent(
        one="lease policy",
        many="lease policies",
        rows=lambda template: LeasePolicy.objects.filter(template=template),
        goes=True,
    )
)
