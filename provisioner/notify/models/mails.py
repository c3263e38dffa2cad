"""Mails: an outbox of rows."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.lib.fields import EvidenceField
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.models import Workspace


class Notification(models.Model):
    """A mail about a workspace, a template or a Perforce server.

    About a workspace, to its owner: one for each kind, deadline and moment before it.
    About a template's volume: one for each person and moment. About a build of a
    template: one for each build, kind and person. About a server: one for each
    administrator and moment. The person is an
    account, `recipient`, or a Perforce user without an account, `p4_user`. Perforce is
    asked for that user's `address`, which is "" until then.

    A row is written in the transaction that is its reason, and sent at `due_at`. It is
    claimed once, before it is sent, so nobody gets it twice: if the sender is killed in
    between, nobody knows whether it arrived. A mail that is not sent is voided, with
    the reason.
    """

    class Kind(models.TextChoices):
        WORKSPACE_READY = "workspace_ready", "Ready"
        WORKSPACE_FAILED = "workspace_failed", "Could not be provisioned"
        LEASE_ENDS = "lease_ends", "Lease ends soon"
        TRASHED = "trashed", "Moved to the trash"
        RETIRE_FAILED = "retire_failed", "Could not be retired"
        ABANDONED = "abandoned", "Looks abandoned"
        SNAPSHOT_WITHDRAWN = "snapshot_withdrawn", "Its snapshot was withdrawn"
        TEMPLATE_FAILED = "template_failed", "Build or test of a template failed"
        VOLUME_FILLS = "volume_fills", "Its volume fills up"
        RESTORED_IN_PART = "restored_in_part", "Restored except some files"
        TEMPLATE_RECOVERED = "template_recovered", "A template recovered"
        SERVER_TROUBLE = "server_trouble", "A Perforce server needs an administrator"

    workspace = models.ForeignKey(
        Workspace,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="notices",
    )
    template = models.ForeignKey(
        Template,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="notices",
    )
    server = models.ForeignKey(
        PerforceServer,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="notices",
    )
    operation = models.ForeignKey(
        Operation,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="notices",
        help_text="The retirement or the build that it is about.",
    )
    recipient = models.ForeignKey(
        User, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    p4_user = models.CharField(max_length=255, blank=True)
    address = models.CharField(max_length=320, blank=True)
    kind = models.CharField(max_length=40, choices=Kind)
    deadline_at = models.DateTimeField(null=True, blank=True)
    seconds_before = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField()
    is_for_lease = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Its deadline is the end of the lease that began the retirement.",
    )
    data = EvidenceField(default=dict, help_text="Details for the mail's text.")
    sent_to = models.CharField(max_length=500, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
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
                condition=Q(workspace__isnull=False),
                name="notification_said_once",
                nulls_distinct=False,
            ),
            models.UniqueConstraint(
                fields=("operation", "kind", "recipient", "p4_user"),
                condition=Q(template__isnull=False, operation__isnull=False),
                name="notification_of_build_said_once",
                nulls_distinct=False,
            ),
            models.UniqueConstraint(
                fields=("template", "kind", "recipient", "deadline_at"),
                condition=Q(template__isnull=False, operation__isnull=True),
                name="notification_of_template_said_once",
            ),
            models.UniqueConstraint(
                fields=("server", "kind", "recipient", "deadline_at"),
                condition=Q(server__isnull=False),
                name="notification_of_server_said_once",
            ),
            models.CheckConstraint(
                name="notification_without_build_is_of_volume",
                condition=Q(template__isnull=True)
                | Q(operation__isnull=False)
                | Q(kind="volume_fills", recipient__isnull=False),
            ),
            models.CheckConstraint(
                name="notification_is_about_one_thing",
                condition=Q(
                    workspace__isnull=False,
                    template__isnull=True,
                    server__isnull=True,
                    recipient__isnull=True,
                    p4_user="",
                )
                | Q(
                    workspace__isnull=True,
                    template__isnull=True,
                    server__isnull=False,
                    recipient__isnull=False,
                    p4_user="",
                )
                | (
                    Q(
                        workspace__isnull=True,
                        template__isnull=False,
                        server__isnull=True,
                    )
                    & (
                        Q(recipient__isnull=False, p4_user="")
                        | (Q(recipient__isnull=True) & ~Q(p4_user=""))
                    )
                ),
            ),
            models.CheckConstraint(
                name="notification_of_retirement_says_which",
                condition=~Q(kind__in=("trashed", "retire_failed"))
                | Q(operation__isnull=False),
            ),
            models.CheckConstraint(
                name="notification_for_lease_is_of_retirement",
                condition=Q(is_for_lease=False)
                | Q(kind="retire_failed", deadline_at__isnull=False),
            ),
            models.CheckConstraint(
                name="notification_sent_was_claimed",
                condition=Q(sent_at__isnull=True)
                | Q(claimed_at__isnull=False, voided_at__isnull=True),
            ),
        )
        indexes = (
            models.Index(
                fields=("due_at",),
                condition=Q(claimed_at__isnull=True, voided_at__isnull=True),
                name="notification_due",
            ),
            models.Index(fields=("created_at",), name="notification_by_age"),
        )

    def __str__(self) -> str:
        return f"{self.kind}: {self.workspace or self.template or self.server}"
