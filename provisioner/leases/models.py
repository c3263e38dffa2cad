"""Lease policies."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from provisioner.catalog.models import Template
from provisioner.workspaces.models import Workspace


class LeasePolicy(models.Model):
    """Lease and trash times for a purpose: of one template, or of all others.

    All times in seconds. Without `default_seconds` leases do not end by themselves;
    without `maximum_seconds` they may be extended without limit. With `trash_seconds` 0
    a workspace is purged within minutes, once two checks saw it. `warn_seconds` are the
    times before the end at which mails go out.
    """

    template = models.ForeignKey(
        Template, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    purpose = models.CharField(max_length=16, choices=Workspace.Purpose)
    default_seconds = models.PositiveIntegerField(null=True, blank=True)
    maximum_seconds = models.PositiveIntegerField(null=True, blank=True)
    trash_seconds = models.PositiveIntegerField(default=72 * 3600)
    warn_seconds = ArrayField(models.PositiveIntegerField(), default=list, blank=True)

    class Meta:
        verbose_name_plural = "lease policies"
        constraints = (
            models.UniqueConstraint(
                fields=("template", "purpose"),
                name="lease_policy_unique",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="lease_default_within_maximum",
                condition=Q(maximum_seconds__isnull=True)
                | Q(default_seconds__lte=F("maximum_seconds")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_purpose_display()} of {self.template or 'all templates'}"
