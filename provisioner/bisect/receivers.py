"""Reactions of bisections to events of their workspaces."""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver
from procrastinate.contrib.django import app

from provisioner.audit_log.models import Event
from provisioner.bisect.models import Bisection, BisectionOperation, BisectionStep
from provisioner.bisect.sweeps import GO_ON_BISECTING
from provisioner.catalog.dependents import Dependent, register_dependent
from provisioner.engine.deferring import defer
from provisioner.lib.prepared import Prepared
from provisioner.workspaces.events import asks_how_to_make
from provisioner.workspaces.models import Workspace

ENDS_OF_STEPS = ("workspace_ready", "workspace_failed", "workspace_trashed")


# Asked for each workspace that becomes ready.
_UNDECIDED = Prepared(
    lambda pk: BisectionStep.objects.filter(workspace=pk, verdict="").order_by(),
    keeps_plan=True,
)


@receiver(asks_how_to_make)
def make_for_bisection(workspace: Workspace, **kwargs: Any) -> str | None:
    """Return the operation kind for a workspace that tests a change."""
    return BisectionOperation.STEP if hasattr(workspace, "bisection_step") else None


@receiver(post_save, sender=Event, dispatch_uid="bisect")
def go_on(instance: Event, created: bool, raw: bool, **kwargs: Any) -> None:
    """Continue the bisection that a workspace was made for, if any."""
    if not created or raw or instance.kind not in ENDS_OF_STEPS:
        return
    if instance.workspace_id is None:
        return
    for step in _UNDECIDED.rows(instance.workspace_id):
        job = app.configure_task(GO_ON_BISECTING, queue="sweeps")
        defer(job, bisection_id=step.bisection_id)


register_dependent(
    Dependent(
        one="bisection under way",
        many="bisections under way",
        rows=lambda template: Bisection.objects.filter(
            template=template, state=Bisection.State.RUNNING
        ),
    )
)
