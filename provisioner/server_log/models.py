"""Logs of Perforce servers, what is in them, and sums of it by hour and by day.

Commands, table uses and messages are partitioned by the day (UTC) they began on.
`partitions.py` makes and drops these days; the sums stay.
"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import Q

from provisioner.sites.models import PerforceServer


class ServerLog(models.Model):
    """The text log of a server, and how far it was read.

    `path` is P4LOG as seen on the server's host, and `time_zone` that of its clock.
    `head` is the digest of the first bytes of the file being read: it is known by that
    after a rotation too, compressed or not. `offset` is the byte (of the uncompressed
    file) that is read next, and `running` the commands that had begun before it and not
    ended. They change in the transaction that stores what was read up to there.
    `gaps` counts rotated files that were gone before they were read to their end,
    `misdated` commands that are not stored as their day has not come yet.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="log"
    )
    path = models.CharField(max_length=1000)
    time_zone = models.CharField(max_length=64, default="UTC")
    is_followed = models.BooleanField(default=True)
    head = models.CharField(max_length=64, blank=True, editable=False)
    offset = models.BigIntegerField(default=0, editable=False)
    running = models.JSONField(default=list, editable=False)
    read_at = models.DateTimeField(null=True, editable=False)
    behind_bytes = models.BigIntegerField(default=0, editable=False)
    trouble = models.TextField(blank=True, editable=False)
    commands = models.BigIntegerField(default=0, editable=False)
    errors = models.BigIntegerField(default=0, editable=False)
    other_lines = models.BigIntegerField(default=0, editable=False)
    not_utf8 = models.BigIntegerField(default=0, editable=False)
    ends_without_start = models.BigIntegerField(default=0, editable=False)
    clock_jumps = models.BigIntegerField(default=0, editable=False)
    misdated = models.BigIntegerField(default=0, editable=False)
    gaps = models.BigIntegerField(default=0, editable=False)

    def __str__(self) -> str:
        return f"Log of {self.server}"


# Of rows by the million, which come in bulk: no trigger and no index for each.
_UNCHECKED: dict[str, Any] = {
    "on_delete": models.CASCADE,
    "related_name": "+",
    "db_index": False,
    "db_constraint": False,
}


class LogCommand(models.Model):
    """A command in a log; times in milliseconds.

    `ended_at` is None if the log does not tell. Waits and holds are those of all its
    locks of tables together. `arguments` are without what may be secret.
    """

    log = models.ForeignKey(ServerLog, **_UNCHECKED)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    pid = models.BigIntegerField()
    user = models.TextField()
    client = models.TextField()
    host = models.TextField()
    program = models.TextField()
    command = models.TextField()
    arguments = models.TextField()
    lapse_ms = models.BigIntegerField()
    compute_ms = models.BigIntegerField()
    paused_ms = models.BigIntegerField()
    cpu_ms = models.BigIntegerField()
    wait_ms = models.BigIntegerField()
    held_ms = models.BigIntegerField()
    max_rss_kb = models.BigIntegerField()
    rpc_in_mb = models.BigIntegerField()
    rpc_out_mb = models.BigIntegerField()
    files_sent = models.BigIntegerField()
    sent_mb = models.BigIntegerField()
    has_failed = models.BooleanField()

    class Meta:
        ordering = ("-started_at", "-pk")
        indexes = (
            models.Index(fields=("log", "started_at"), name="log_command_by_time"),
            models.Index(fields=("id",), name="log_command_by_id"),
            models.Index(
                fields=("log", "started_at"),
                condition=Q(lapse_ms__gte=10_000),
                name="log_command_slow",
            ),
        )

    def __str__(self) -> str:
        return f"{self.command} of {self.user} ({self.pid})"


class LogTableUse(models.Model):
    """What a command waited for a table's locks and held them, if that was long."""

    log = models.ForeignKey(ServerLog, **_UNCHECKED)
    command_id = models.BigIntegerField()
    started_at = models.DateTimeField()
    table = models.TextField()
    read_wait_ms = models.BigIntegerField()
    read_held_ms = models.BigIntegerField()
    write_wait_ms = models.BigIntegerField()
    write_held_ms = models.BigIntegerField()

    class Meta:
        ordering = ("pk",)
        indexes = (
            models.Index(fields=("command_id",), name="log_table_use_of_command"),
        )

    def __str__(self) -> str:
        return self.table


class LogMessage(models.Model):
    """An error, a message of the server about itself, or a line of another kind."""

    log = models.ForeignKey(ServerLog, **_UNCHECKED)
    at = models.DateTimeField()
    kind = models.CharField(max_length=8, help_text="A MessageKind.")
    pid = models.BigIntegerField(null=True)
    operation = models.TextField()
    text = models.TextField()

    class Meta:
        ordering = ("-at", "-pk")
        indexes = (models.Index(fields=("log", "at"), name="log_message_by_time"),)

    def __str__(self) -> str:
        return self.text


class Span(models.TextChoices):
    HOUR = "hour", "Hour"
    DAY = "day", "Day"


class LogSum(models.Model):
    """What all commands of an hour or a day (UTC) with something in common took.

    `by` says what that is, and `name` which one: all commands of one user, say.
    """

    class By(models.TextChoices):
        COMMAND = "command", "Command"
        USER = "user", "User"
        PROGRAM = "program", "Program"
        CLIENT = "client", "Client"
        HOST = "host", "Host"

    log = models.ForeignKey(ServerLog, on_delete=models.CASCADE, related_name="+")
    span = models.CharField(max_length=4, choices=Span)
    by = models.CharField(max_length=7, choices=By)
    at = models.DateTimeField()
    name = models.TextField()
    commands = models.BigIntegerField()
    failed = models.BigIntegerField()
    over_30s = models.BigIntegerField()
    over_60s = models.BigIntegerField()
    over_120s = models.BigIntegerField()
    lapse_ms = models.BigIntegerField()
    longest_ms = models.BigIntegerField()
    cpu_ms = models.BigIntegerField()
    wait_ms = models.BigIntegerField()
    held_ms = models.BigIntegerField()
    files_sent = models.BigIntegerField()
    sent_mb = models.BigIntegerField()

    class Meta:
        ordering = ("-at", "name")
        constraints = (
            models.UniqueConstraint(
                fields=("log", "span", "by", "at", "name"), name="log_sum_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.at})"


class LockSum(models.Model):
    """What one user's commands of a kind waited for a table's locks and held them."""

    log = models.ForeignKey(ServerLog, on_delete=models.CASCADE, related_name="+")
    span = models.CharField(max_length=4, choices=Span)
    at = models.DateTimeField()
    table = models.TextField()
    user = models.TextField()
    command = models.TextField()
    commands = models.BigIntegerField()
    read_wait_ms = models.BigIntegerField()
    read_held_ms = models.BigIntegerField()
    write_wait_ms = models.BigIntegerField()
    write_held_ms = models.BigIntegerField()
    longest_wait_ms = models.BigIntegerField()
    longest_held_ms = models.BigIntegerField()

    class Meta:
        ordering = ("-at", "table", "user")
        constraints = (
            models.UniqueConstraint(
                fields=("log", "span", "at", "table", "user", "command"),
                name="lock_sum_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.table}, {self.user}"
