"""Warm pools: workspaces made ahead of requests."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace


class Pool(models.Model):
    """A warm pool: members of a template at a site, for an account and a purpose.

    Its members are rows of Workspace with `is_pooled`: clones of what new workspaces
    get at the site, with that account's uid and client. `windows` are lines such as
    "mon-fri 07:00-19:00 20" (UTC); the first that covers a time counts, and `size` at
    all other times. `failures` are consecutive ones; `retry_at` is when they let it be
    filled again. `status_message` says what keeps it below its size, if anything.
    """

    template = models.ForeignKey(
        Template, on_delete=models.CASCADE, related_name="pools"
    )
    site = models.ForeignKey(
        Site,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The template's site, or that of a mirror.",
    )
    purpose = models.CharField(max_length=16, choices=Workspace.Purpose)
    owner = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="The account that owns the members, with its uid.",
    )
    size = models.PositiveIntegerField()
    windows = ArrayField(models.CharField(max_length=80), default=list, blank=True)
    max_age_seconds = models.PositiveIntegerField(default=24 * 3600)
    idle_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        default=2 * 24 * 3600,
        help_text="Its size is halved after each such time without a request.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    changed_at = models.DateTimeField(db_default=Now(), editable=False)
    failures = models.PositiveIntegerField(default=0)
    failed_at = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    status_message = models.TextField(blank=True)

    class Meta:
        ordering = ("template__name", "site__name", "purpose", "owner__username")
        constraints = (
            models.UniqueConstraint(
                fields=("template", "site", "purpose", "owner"), name="pool_unique"
            ),
            models.CheckConstraint(
                name="pool_failed_has_times",
                condition=Q(failures=0)
                | Q(failed_at__isnull=False, retry_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        where = f"{self.template.name} at {self.site.name}"
        return f"{where}, {self.purpose}, {self.owner.username}"
