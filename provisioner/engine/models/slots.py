"""The slot budget of a Perforce server: pauses, waits for locks, and others' load."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.engine.models.operations import Operation


class SlotBudget(models.Model):
    """The pause switch of a Perforce server, and its reduced budget.

    Separate from the server's row, which people edit. No row: never paused, and the
    full budget. Since `backed_off_at` only `backed_off_to` may run at a time, and
    one more with each minute.
    """

    server = models.OneToOneField(
        "sites.PerforceServer", on_delete=models.CASCADE, related_name="slot_budget"
    )
    paused_at = models.DateTimeField(null=True, blank=True)
    paused_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    paused_reason = models.TextField(blank=True)
    backed_off_to = models.PositiveSmallIntegerField(null=True, blank=True)
    backed_off_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="slot_budget_backed_off_says_how_far_and_when",
                condition=Q(backed_off_to__isnull=True, backed_off_at__isnull=True)
                | Q(backed_off_to__gte=1, backed_off_at__isnull=False),
            ),
            models.CheckConstraint(
                name="slot_budget_paused_says_by_whom_and_why",
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


class ServerLoad(models.Model):
    """What others did at a Perforce server, as last read; only while we use it.

    Since `others_wait_since` each reading found `tables` locked for writing, and
    `commands` of others that ran meanwhile: user, command and seconds. `maintenance` is
    a command that needs the server for itself, "" if none ran.
    """

    server = models.OneToOneField(
        "sites.PerforceServer", on_delete=models.CASCADE, related_name="load"
    )
    read_at = models.DateTimeField()
    others_wait_since = models.DateTimeField(null=True, blank=True)
    tables = ArrayField(models.TextField(), default=list, blank=True)
    commands = models.JSONField(default=list, blank=True)
    maintenance = models.TextField(blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="server_load_says_who_waits_and_since_when",
                condition=Q(others_wait_since__isnull=True, tables=[], commands=[])
                | Q(~Q(tables=[]), ~Q(commands=[]), others_wait_since__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"Load of {self.server}"


class LockWait(models.Model):
    """A command of ours that waited for a lock, as the server reported."""

    server = models.ForeignKey(
        "sites.PerforceServer", on_delete=models.CASCADE, related_name="lock_waits"
    )
    at = models.DateTimeField()
    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    command = models.CharField(max_length=40)
    table = models.CharField(max_length=100)
    waited_ms = models.PositiveIntegerField()
    held_ms = models.PositiveIntegerField()

    class Meta:
        indexes = (models.Index(fields=("server", "-at"), name="lock_wait_newest"),)

    def __str__(self) -> str:
        return f"{self.command} waited {self.waited_ms} ms for {self.table}"
