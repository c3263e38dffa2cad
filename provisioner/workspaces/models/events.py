"""What happened, for people to read."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.workspaces.models.templates import Template
from provisioner.workspaces.models.workspaces import Workspace


class Event(models.Model):
    """Something that happened, for people to read; written once, never changed."""

    at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=60)
    message = models.TextField()
    actor = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    workspace = models.ForeignKey(
        Workspace,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="events",
    )
    template = models.ForeignKey(
        Template,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="events",
    )
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ("-at", "-id")
        constraints = (
            models.CheckConstraint(
                name="event_is_about_something",
                condition=Q(workspace__isnull=False) | Q(template__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return self.message

    @staticmethod
    def about(subject: Workspace | Template) -> dict[str, Any]:
        """Return the field that points an event at its subject."""
        key = "workspace" if isinstance(subject, Workspace) else "template"
        return {key: subject}
