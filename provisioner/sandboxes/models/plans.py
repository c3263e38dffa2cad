"""What plans have in common by which sandboxes are made."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.lib import schedules
from provisioner.sandboxes.models.hosts import P4dVersion, SandboxHost
from provisioner.sandboxes.models.sandboxes import Sandbox
from provisioner.sites.models import PerforceServer


class SandboxPlan(models.Model):
    """When sandboxes of a server are made for a purpose, where, and with which p4d.

    `tried_for` is the due time that was acted on last, and `status` says what came of
    it. Without `host` or `version`, which may have been deleted, nothing is made.
    """

    PURPOSE: ClassVar[Sandbox.Purpose]

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="%(class)s"
    )
    host = models.ForeignKey(
        SandboxHost, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    version = models.ForeignKey(
        P4dVersion, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    cron = models.CharField(max_length=schedules.LONGEST)
    is_on = models.BooleanField(default=False)
    changed_at = models.DateTimeField(db_default=Now(), editable=False)
    tried_for = models.DateTimeField(null=True, editable=False)
    has_failed = models.BooleanField(default=False, editable=False)
    status = models.TextField(blank=True, editable=False)

    class Meta:
        abstract = True
        ordering = ("server__name",)
        constraints: ClassVar[tuple[models.BaseConstraint, ...]] = (
            models.CheckConstraint(
                name="%(class)s_says_why_it_failed",
                condition=Q(has_failed=False) | ~Q(status=""),
            ),
        )
