"""Tell administrators what a Perforce server needs them for."""

from __future__ import annotations

from django.db import transaction
from django.db.models import prefetch_related_objects

from provisioner.accounts.models import User
from provisioner.lib import clocks
from provisioner.notify import webhooks
from provisioner.notify.channels import Channel, channels_for
from provisioner.notify.models import Notification
from provisioner.sites.models import PerforceServer

KIND = Notification.Kind.SERVER_TROUBLE


@transaction.atomic
def administrators_tell(
    server: PerforceServer, *, title: str, sentence: str, path: str
) -> None:
    """Write the mails to administrators, and the messages to their webhooks.

    `title` is the subject, and `path` that of the page that shows more.
    """
    now = clocks.database_now()
    data = {"title": title, "sentence": sentence, "path": path}
    administrators = User.objects.filter(
        is_staff=True, is_active=True, is_service=False
    )
    people = list(administrators.order_by("pk"))
    prefetch_related_objects(people, "notification_choices")
    for person in people:
        if Channel.MAIL in channels_for(person, KIND):
            Notification.objects.get_or_create(
                server=server,
                kind=KIND,
                recipient=person,
                deadline_at=now,
                defaults={"due_at": now, "data": data},
            )
    webhooks.tell_of_server(server, title=title, sentence=sentence, path=path, at=now)
