"""What is kept about the budget of a Perforce server, beside the row of the server."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.workspaces.models.sites import PerforceServer


class Governor(models.Model):
    """The switch that pauses a Perforce server.

    Apart from the server's row, which people keep by hand. No row: never paused.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="governor"
    )
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    paused_reason = models.TextField(blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="governor_paused_says_by_whom_and_why",
                condition=Q(
                    paused_at__isnull=True, paused_by__isnull=True, paused_reason=""
                )
                | Q(
                    ~Q(paused_reason=""),
                    paused_at__isnull=False,
                    paused_by__isnull=False,
                ),
            ),
        )

    def __str__(self) -> str:
        return self.server.name

    @property
    def is_paused(self) -> bool:
        return self.paused_at is not None
