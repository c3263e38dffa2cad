"""How long workspaces live, and what was said about it."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q

from provisioner.workspaces.models.templates import Template
from provisioner.workspaces.models.workspaces import Workspace


class LeasePolicy(models.Model):
    """Lease and trash times for a purpose: of one template, or of all others.

    All times in seconds. No `default_seconds`: leases do not end by themselves; no
    `maximum_seconds`: they may be extended without end. `trash_seconds` 0: purged at
    once. `warn_seconds` says how long before the end mails go out.
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


class Notice(models.Model):
    """A mail about a workspace: once per kind, deadline and moment before it.

    Written in the transaction that gives the reason for it; due at `due_at`. It is
    claimed before it is sent and never claimed again, so nobody gets it twice: of a
    mail whose sender was killed in between, nobody knows whether it arrived. Voided is
    what was not sent, with the reason.
    """

    class Kind(models.TextChoices):
        LEASE_ENDS = "lease_ends", "Lease ends soon"
        TRASHED = "trashed", "Moved to the trash"
        RETIRE_FAILED = "retire_failed", "Could not be retired"
        ABANDONED = "abandoned", "Looks abandoned"

    workspace = models.ForeignKey(
        Workspace, on_delete=models.CASCADE, related_name="notices"
    )
    kind = models.CharField(max_length=40, choices=Kind)
    deadline_at = models.DateTimeField(null=True, blank=True)
    seconds_before = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField()
    data = models.JSONField(default=dict, help_text="What the mail has to say.")
    sent_to = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    sent_at = models.DateTimeField(null=True, blank=True)
    voided_at = models.DateTimeField(null=True, blank=True)
    void_reason = models.CharField(max_length=500, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("workspace", "kind", "deadline_at", "seconds_before"),
                name="notice_said_once",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="notice_sent_was_claimed",
                condition=Q(sent_at__isnull=True)
                | Q(claimed_at__isnull=False, voided_at__isnull=True),
            ),
        )
        indexes = (
            models.Index(
                fields=("due_at",),
                condition=Q(claimed_at__isnull=True, voided_at__isnull=True),
                name="notice_due",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind}: {self.workspace}"
