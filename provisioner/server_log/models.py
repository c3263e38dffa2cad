"""Logs of Perforce servers, what is in them, and sums of it by hour and by day.

Commands, table uses and messages are partitioned by the day (UTC) they began on.
`partitions.py` makes and drops these days; the sums stay, partitioned by their span.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.sites.models import PerforceServer


class Origin(models.TextChoices):
    """Whose a command is, as far as was known when it was stored."""

    PEOPLE = "people", "People"
    BUILDS = "builds", "Builds"
    OURS = "ours", "Cloneyard"


class ServerLog(models.Model):
    """The text log of a server, and how far it was read.

    `path` is P4LOG as seen on the server's host, empty where it is followed by p4
    logtail, and `time_zone` that of the host's clock. `build_users` are Perforce users
    whose commands count as those of builds, one a line, with * for any text.
    `head` is the digest of the first bytes of the file being read: it is known by that
    after a rotation too, compressed or not. `offset` is the byte (of the uncompressed
    file) that is read next, and `running` the commands that had begun before it and not
    ended. They change in the transaction that stores what was read up to there.
    `left_open` are commands that had not ended where files did that nobody followed:
    the next file may bring their ends. `loose_ends` are ends without their commands,
    which a file that comes late may bring.
    `gaps` counts rotated files that were gone before they were read to their end,
    `misdated` commands that are not stored as their day has not come yet.
    """

    class Way(models.TextChoices):
        """How a log is followed."""

        HOST = "host", "By a worker on its host"
        LOGTAIL = "logtail", "By p4 logtail"

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="log"
    )
    way = models.CharField(max_length=7, choices=Way, default=Way.HOST)
    path = models.CharField(max_length=1000, blank=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    is_followed = models.BooleanField(default=True)
    build_users = models.TextField(blank=True, default="")
    head = models.CharField(max_length=64, blank=True, editable=False)
    offset = models.BigIntegerField(default=0, editable=False)
    running = models.JSONField(default=list, editable=False)
    left_open = models.JSONField(default=list, editable=False)
    loose_ends = models.JSONField(default=list, editable=False)
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

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(is_followed=False) | Q(way="logtail") | ~Q(path=""),
                name="server_log_has_path",
            ),
        )

    def __str__(self) -> str:
        return f"Log of {self.server}"


class LogFile(models.Model):
    """A file of a server's log that is not read on: how far it was.

    `head` is as in `ServerLog`, and `size` the uncompressed bytes that were read. The
    file that is followed has no row until another one comes after it.
    """

    log = models.ForeignKey(ServerLog, on_delete=models.CASCADE, related_name="files")
    head = models.CharField(max_length=64)
    size = models.BigIntegerField()

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("log", "head"), name="log_file_once"),
        )

    def __str__(self) -> str:
        return f"{self.log} ({self.head[:8]})"


# What scans so many rows of tables is asked for by itself.
MANY_ROWS = 1_000_000


class LogUpload(models.Model):
    """A log that was sent to us: what came of it.

    `key` names its file in LOG_DIR, which is gone once it was read or refused. `size`
    is what was sent, compressed or not. `message` says what was read, or why nothing.
    `attempts` to read it have begun.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        READ = "read", "Read"
        REFUSED = "refused", "Refused"

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="log_uploads"
    )
    key = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=255)
    size = models.BigIntegerField()
    state = models.CharField(max_length=7, choices=State, default=State.WAITING)
    message = models.TextField(blank=True)
    attempts = models.PositiveSmallIntegerField(default=0, editable=False)
    uploaded_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    uploaded_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("-uploaded_at", "-pk")

    def __str__(self) -> str:
        return self.name

    @property
    def path(self) -> Path:
        return upload_path(self.key)


def upload_path(key: uuid.UUID) -> Path:
    """Return where the file of an upload is: web servers and workers share LOG_DIR."""
    return Path(settings.LOG_DIR) / f"server-log-{key}.upload"


# Of rows by the million, which come in bulk: no trigger and no index for each.
_UNCHECKED: dict[str, Any] = {
    "on_delete": models.CASCADE,
    "related_name": "+",
    "db_index": False,
    "db_constraint": False,
}


def _name() -> models.TextField[str, str]:
    """Return a column of names that are found and grouped, by the million.

    Compared byte by byte: rules of a language cost most of the time of their indexes.
    """
    return models.TextField(db_collation="C")


class LogCommand(models.Model):
    """A command in a log; times in milliseconds.

    `ended_at` is None if the log does not say. Waits and holds are those of all its
    locks of tables together, and `rows_scanned` are rows of all tables. `arguments` are
    without what may be secret.
    """

    log = models.ForeignKey(ServerLog, **_UNCHECKED)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    pid = models.BigIntegerField()
    user = _name()
    client = _name()
    host = _name()
    program = _name()
    command = _name()
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
    rows_scanned = models.BigIntegerField()
    origin = models.CharField(max_length=6, choices=Origin)

    class Meta:
        ordering = ("-started_at", "-pk")
        indexes = (
            models.Index(fields=("started_at", "log"), name="log_command_by_time"),
            models.Index(fields=("id",), name="log_command_by_id"),
            models.Index(
                fields=("started_at", "log", "lapse_ms"),
                condition=Q(lapse_ms__gte=10_000),
                name="log_command_slow",
            ),
            models.Index(
                fields=("started_at", "log"),
                condition=Q(has_failed=True),
                name="log_command_failed",
            ),
            models.Index(
                fields=("started_at", "log"),
                condition=Q(rows_scanned__gte=MANY_ROWS),
                name="log_command_of_many_rows",
            ),
            models.Index(fields=("lapse_ms",), name="log_command_longest"),
            models.Index(
                fields=("lapse_ms",),
                condition=Q(origin=Origin.OURS),
                name="log_command_of_ours",
            ),
            # Of rare names; those of many rows are found by the others.
            *(
                models.Index(fields=(name, "lapse_ms"), name=f"log_command_{name}")
                for name in ("user", "client", "host", "program", "command")
            ),
            # Their newest, and how many: of a host in thousands, by time alone, nearly
            # all commands of its days are looked at.
            *(
                models.Index(fields=(name, "started_at"), name=f"log_command_of_{name}")
                for name in ("user", "client", "host")
            ),
        )

    def __str__(self) -> str:
        return f"{self.command} of {self.user} ({self.pid})"


class LogTableUse(models.Model):
    """What a command waited for a table's locks and held them, if that was long.

    With what is asked of these commands, so that nobody has to look them up.
    `ended_at` is by the lapse where that is more exact: the log has whole seconds.
    """

    log = models.ForeignKey(ServerLog, **_UNCHECKED)
    command_id = models.BigIntegerField()
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField()
    user = _name()
    client = _name()
    command = _name()
    origin = models.CharField(max_length=6, choices=Origin)
    table = _name()
    read_wait_ms = models.BigIntegerField()
    read_held_ms = models.BigIntegerField()
    write_wait_ms = models.BigIntegerField()
    write_held_ms = models.BigIntegerField()

    class Meta:
        ordering = ("pk",)
        indexes = (
            models.Index(fields=("command_id",), name="log_table_use_of_command"),
            models.Index(fields=("table", "started_at"), name="log_table_use_by_time"),
            models.Index(fields=("user", "table"), name="log_table_use_of_user"),
            models.Index(
                fields=("command", "started_at"), name="log_table_use_by_command"
            ),
            models.Index(fields=("id",), name="log_table_use_by_id"),
        )

    def __str__(self) -> str:
        return self.table


class LogMessage(models.Model):
    """An error, a message of the server about itself, or a line of another kind."""

    class Kind(models.TextChoices):
        """As `MessageKind` of the parser."""

        ERROR = "error", "Error of a command"
        PRESSURE = "pressure", "Under pressure"
        PAUSED_THREADS = "paused", "Paused threads"
        THREADS = "threads", "Active threads"
        OTHER = "other", "Unknown line"

    log = models.ForeignKey(ServerLog, **_UNCHECKED)
    at = models.DateTimeField()
    kind = models.CharField(max_length=8, choices=Kind)
    pid = models.BigIntegerField(null=True)
    operation = models.TextField()
    text = models.TextField()

    class Meta:
        ordering = ("-at", "-pk")
        indexes = (models.Index(fields=("at", "log"), name="log_message_by_time"),)

    def __str__(self) -> str:
        return self.text


class SeenCheckpoint(models.Model):
    """A command that locks all tables, such as a checkpoint, seen while it ran.

    `seen_at` is when it was last seen, and `what` what was seen of it then.
    """

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="+"
    )
    began_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    what = models.TextField()

    class Meta:
        ordering = ("-began_at", "-pk")
        constraints = (
            models.CheckConstraint(
                name="seen_checkpoint_begins_first",
                condition=Q(seen_at__gte=models.F("began_at")),
            ),
        )

    def __str__(self) -> str:
        return self.what


class LogHour(models.Model):
    """An hour of a log whose repeated commands are to be counted, or counted again."""

    log = models.ForeignKey(ServerLog, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()

    class Meta:
        ordering = ("at",)
        constraints = (
            models.UniqueConstraint(fields=("log", "at"), name="log_hour_once"),
        )

    def __str__(self) -> str:
        return f"{self.log} ({self.at})"


class RepeatedCommand(models.Model):
    """A command that a program repeated all through an hour: it polls.

    `parts` are the five-minute parts of the hour in which it began.
    """

    log = models.ForeignKey(ServerLog, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()
    user = _name()
    program = _name()
    client = _name()
    command = _name()
    origin = models.CharField(max_length=6, choices=Origin)
    commands = models.BigIntegerField()
    parts = models.PositiveSmallIntegerField()
    lapse_ms = models.BigIntegerField()
    rows_scanned = models.BigIntegerField()

    class Meta:
        ordering = ("-at", "-commands", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("at", "log", "user", "program", "client", "command", "origin"),
                name="repeated_command_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.command} of {self.user} ({self.program})"


class Span(models.TextChoices):
    """What sums are of, in UTC. A week begins on a Monday."""

    HOUR = "hour", "Hour"
    DAY = "day", "Day"
    WEEK = "week", "Week"


class LogSum(models.Model):
    """What all commands of a span with something in common took.

    Of thousands of hosts a month by the day is too much to add up while somebody waits:
    so there are weeks. `by` says what they have in common, and `name` which one: all
    commands of one user, say. `over_30s` and the like took so long or longer.
    `most_rows` is what one of them scanned at most.
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
    name = _name()
    origin = models.CharField(max_length=6, choices=Origin)
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
    rows_scanned = models.BigIntegerField()
    most_rows = models.BigIntegerField()

    class Meta:
        ordering = ("-at", "name")
        constraints = (
            models.UniqueConstraint(
                fields=("span", "by", "at", "log", "name", "origin"),
                name="log_sum_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.at})"


class LockSum(models.Model):
    """What commands waited for a table's locks and held them.

    By one user's commands of a kind, and by the table alone, without user and command.
    Of those that did so for some milliseconds (`storing.WORTH_A_SUM_MS`).
    """

    class By(models.TextChoices):
        TABLE = "table", "Table"
        COMMAND = "command", "Command"

    log = models.ForeignKey(ServerLog, on_delete=models.CASCADE, related_name="+")
    span = models.CharField(max_length=4, choices=Span)
    by = models.CharField(max_length=7, choices=By)
    at = models.DateTimeField()
    table = _name()
    user = _name()
    command = _name()
    origin = models.CharField(max_length=6, choices=Origin)
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
                fields=(
                    *("span", "by", "at", "log", "table", "user", "command", "origin"),
                ),
                name="lock_sum_once",
            ),
        )

    def __str__(self) -> str:
        return f"{self.table}, {self.user}"
