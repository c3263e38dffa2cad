"""Which notifications a person wants, and how they are sent."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from provisioner.accounts.models import User


class Topic(models.TextChoices):
    """Kinds of events, as people choose among them."""

    WORKSPACES = "workspaces", "My workspaces are ready, or have failed"
    LEASES = "leases", "Leases, retirement and the trash"
    SNAPSHOTS = "snapshots", "Withdrawn snapshots"
    VOLUMES = "volumes", "Volumes that fill up"
    TEMPLATES = "templates", "Builds and tests of templates"
    SERVERS = "servers", "Checkpoints, archives and drills, for administrators"


class NotificationChoice(models.Model):
    """How a person is notified of a topic, if they have chosen.

    Ask `notify/channels.py`. Mails about leases cannot be turned off: a lease ends only
    after its warning was sent.
    """

    person = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="notification_choices"
    )
    topic = models.CharField(max_length=10, choices=Topic)
    by_mail = models.BooleanField()
    by_webhook = models.BooleanField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("person", "topic"), name="notification_chosen_once_for_a_topic"
            ),
            models.CheckConstraint(
                name="notification_of_leases_by_mail",
                condition=~Q(topic="leases") | Q(by_mail=True),
            ),
        )

    def __str__(self) -> str:
        return f"{self.topic} of {self.person}"
