"""Announcements of maintenance."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from provisioner.accounts.models import User
from provisioner.accounts.names import check_one_line

LONGEST_MESSAGE = 300


class Maintenance(models.Model):
    """An announcement that every page shows until it ends. It has no other effect."""

    message = models.CharField(
        max_length=LONGEST_MESSAGE,
        validators=[check_one_line],
        help_text="What is done, and what does not work meanwhile.",
    )
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField(db_index=True)
    announced_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ("starts_at", "pk")
        constraints = (
            models.CheckConstraint(
                name="maintenance_ends_after_it_begins",
                condition=Q(ends_at__gt=F("starts_at")),
            ),
        )

    def __str__(self) -> str:
        return self.message
