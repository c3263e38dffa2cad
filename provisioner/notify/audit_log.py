"""What has entered the trail is told to people and to programs, in its transaction.

The trail is where everything that happens comes by, whoever moves it: a step that
ended, the watchdog, a person.
"""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.utils import timezone
from procrastinate.contrib.django import app

from provisioner.audit_log.models import Event
from provisioner.bisect.models import Trial
from provisioner.engine.models import Operation
from provisioner.engine.queueing import defer
from provisioner.notify import templates, webhooks

OF_BUILDS = {
    "template_ready": (Operation.State.SUCCEEDED,),
    "template_failed": (Operation.State.FAILED,),
}

ENDS_OF_TRIALS = ("workspace_ready", "workspace_failed", "workspace_trashed")
GO_ON_BISECTING = "go_on_bisecting"


def listen() -> None:
    """Connect the receiver; called once, when the app is ready."""
    post_save.connect(_entered, sender=Event, dispatch_uid="telling")


def _entered(instance: Event, created: bool, raw: bool, **kwargs: Any) -> None:
    if not created or raw:
        return
    if instance.workspace is not None:
        webhooks.tell_of_workspace(instance, instance.workspace)
        if instance.kind in ENDS_OF_TRIALS:
            _trial_may_have_ended(instance)
    elif instance.template is not None and instance.kind in OF_BUILDS:
        _build_ended(instance)


def _trial_may_have_ended(event: Event) -> None:
    """Let the bisection that a workspace was made for look at it, if any."""
    for trial in Trial.objects.filter(workspace=event.workspace, verdict=""):
        job = app.configure_task(GO_ON_BISECTING, queue="sweeps")
        defer(job, bisection_id=trial.bisection_id)


def _build_ended(event: Event) -> None:
    """Tell of the build whose end moved its template; it is the newest."""
    assert event.template is not None
    build = templates.builds_of(event.template).order_by("-pk").first()
    if build is None or build.state not in OF_BUILDS[event.kind]:
        return
    build.template = event.template
    templates.tell(build, now=timezone.now())
    webhooks.tell_of_build(event, build)
