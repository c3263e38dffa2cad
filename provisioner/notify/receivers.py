"""Write notifications in the transaction of their audit event.

Every change records one, whether made by a step, the watchdog or a person.
"""

from __future__ import annotations

from typing import Any

from django.db.models.signals import post_save
from django.dispatch import receiver

from provisioner.audit_log.models import Event
from provisioner.catalog.dependents import Dependent, register_dependent
from provisioner.catalog.events import snapshot_withdrawn
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Operation
from provisioner.lib import clocks
from provisioner.mirrors.models import Mirror
from provisioner.notify import templates, webhooks, workspaces
from provisioner.notify.models import Subscription, Webhook

OF_BUILDS = {
    "template_ready": (Operation.State.SUCCEEDED,),
    "template_failed": (Operation.State.FAILED,),
}


@receiver(post_save, sender=Event, dispatch_uid="notify")
def _entered(instance: Event, created: bool, raw: bool, **kwargs: Any) -> None:
    if not created or raw:
        return
    if instance.workspace is not None:
        workspaces.say_provisioned(instance, instance.workspace)
        workspaces.say_restored_in_part(instance, instance.workspace)
        webhooks.tell_of_workspace(instance, instance.workspace)
    elif instance.template is not None and instance.kind == "volume_filling":
        webhooks.tell_of_template_volume(instance, instance.template)
    elif instance.kind == "volume_filling":
        assert instance.subject_id is not None
        mirror = Mirror.objects.select_related("template__site", "site").get(
            pk=instance.subject_id
        )
        webhooks.tell_of_template_volume(instance, mirror.template, mirror=mirror)
    elif instance.template is not None and instance.kind in OF_BUILDS:
        _build_ended(instance)


@receiver(snapshot_withdrawn, dispatch_uid="notify")
def _withdrawn(snapshot: Snapshot, event: Event, **kwargs: Any) -> None:
    workspaces.say_withdrawn(snapshot, now=clocks.database_now())
    webhooks.tell_of_withdrawal(event, snapshot)


def _build_ended(event: Event) -> None:
    """Write the notifications about the template's newest build, if it ended."""
    assert event.template is not None
    build = templates.builds_of(event.template).order_by("-pk").first()
    if build is None or build.state not in OF_BUILDS[event.kind]:
        return
    build.subject.template = event.template
    templates.tell(build, now=clocks.database_now())
    webhooks.tell_of_build(event, build)


register_dependent(
    Dependent(
        one="subscription to its mails",
        many="subscriptions to its mails",
        rows=lambda template: Subscription.objects.filter(template=template),
        goes=True,
    )
)
register_dependent(
    Dependent(
        one="webhook only for it",
        many="webhooks only for it",
        rows=lambda template: Webhook.objects.filter(template=template),
        goes=True,
    )
)
