"""What has entered the trail is told to people and to programs, in its transaction.

The trail is where everything that happens comes by, whoever moves it: a step that
ended, the watchdog, a person.
"""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.utils import timezone

from provisioner.workspaces import hooks, news
from provisioner.workspaces.models import Event, Operation

OF_BUILDS = {
    "template_ready": (Operation.State.SUCCEEDED,),
    "template_failed": (Operation.State.FAILED,),
}


def listen() -> None:
    """Connect the receiver; called once, when the app is ready."""
    post_save.connect(_entered, sender=Event, dispatch_uid="telling")


def _entered(instance: Event, created: bool, raw: bool, **kwargs: Any) -> None:
    if not created or raw:
        return
    if instance.workspace is not None:
        hooks.tell_of_workspace(instance, instance.workspace)
    elif instance.template is not None and instance.kind in OF_BUILDS:
        _build_ended(instance)


def _build_ended(event: Event) -> None:
    """Tell of the build whose end moved its template; it is the newest."""
    assert event.template is not None
    build = news.builds_of(event.template).order_by("-pk").first()
    if build is None or build.state not in OF_BUILDS[event.kind]:
        return
    build.template = event.template
    news.tell(build, now=timezone.now())
    hooks.tell_of_build(event, build)
