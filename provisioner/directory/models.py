"""Syncs with the directory: what each found, and what it did or asks to do."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.accounts.models import User


class DirectorySync(models.Model):
    """One comparison of accounts with the directory.

    It asks an administrator instead of closing many accounts at once. Who agrees lets
    the next one close those accounts, if the directory still says so.
    """

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        PREVIEWED = "previewed", "Preview"
        DONE = "done", "Done"
        ASKS = "asks", "Needs approval"
        APPROVED = "approved", "Approved"
        FAILED = "failed", "Failed"

    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    began_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)
    message = models.TextField(blank=True, help_text="Why it failed, or asks.")
    accounts_known = models.PositiveIntegerField(
        default=0, help_text="Accounts that belong to people of the directory."
    )
    approved_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.CheckConstraint(
                name="directory_sync_runs_or_has_ended",
                condition=Q(state="running", ended_at__isnull=True)
                | (~Q(state="running") & Q(ended_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="directory_sync_approved_by_somebody",
                condition=Q(state="approved", approved_by__isnull=False)
                | (~Q(state="approved") & Q(approved_by__isnull=True)),
            ),
        )

    def __str__(self) -> str:
        return f"directory sync {self.pk}"

    @property
    def asks(self) -> bool:
        return self.state == self.State.ASKS

    @property
    def has_compared(self) -> bool:
        return self.state in (self.State.DONE, self.State.PREVIEWED)

    @property
    def level(self) -> str:
        """How its message is shown."""
        return "error" if self.state == self.State.FAILED else "warning"


class DirectoryChange(models.Model):
    """What a sync does to one account, or would do."""

    class Action(models.TextChoices):
        CLOSE = "close", "Close"
        TAKE_ROLE = "take_role", "Take the role of an administrator"
        UPDATE = "update", "Update"

    LOSES = (Action.CLOSE, Action.TAKE_ROLE)

    sync = models.ForeignKey(
        DirectorySync, on_delete=models.CASCADE, related_name="changes"
    )
    account = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    action = models.CharField(max_length=10, choices=Action)
    sentence = models.TextField()
    is_applied = models.BooleanField(default=False)

    class Meta:
        ordering = ("action", "account__username")
        constraints = (
            models.UniqueConstraint(
                fields=("sync", "account"), name="directory_change_once_per_account"
            ),
        )

    def __str__(self) -> str:
        return f"{self.account}: {self.sentence}"
