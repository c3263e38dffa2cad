"""Processes of Perforce servers as last read, and requests to end them."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.accounts.requested_mails import RequestedMail
from provisioner.lib.fields import EvidenceField
from provisioner.server_log.models import ServerLog
from provisioner.sites.models import PerforceServer

# They belong to the server itself: without them a replica falls behind.
OF_THE_SERVER = frozenset(
    {"pull", "journalcopy", "rmt-Journal", "rmt-FileFetch", "ldapsync", "bgtask"}
)


class ProcessReading(models.Model):
    """The last reading of a server's processes.

    `read_at` is None before the first that succeeded; `trouble` says why the last one
    failed, "" if it did not.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="process_reading"
    )
    read_at = models.DateTimeField(null=True)
    trouble = models.TextField(blank=True)

    def __str__(self) -> str:
        return f"Processes of {self.server}"


class Process(models.Model):
    """A process of a Perforce server as last read: one command of one connection.

    `number` is the server's own, and used again for later ones. `started_at` is when
    its command began, within two seconds, as the server tells whole seconds.
    `gone_host` is the host that was last found to be gone, "" if none was.
    """

    class State(models.TextChoices):
        RUNNING = "R", "Running"
        TERMINATED = "T", "Being ended"
        PAUSED = "P", "Paused"
        BACKGROUND = "B", "In the background"
        FINISHING = "F", "Finishing"
        IDLE = "I", "Idle"

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="processes"
    )
    number = models.BigIntegerField()
    state = models.CharField(max_length=1, choices=State)
    user = models.TextField()
    program = models.TextField(blank=True)
    client = models.TextField(blank=True)
    host = models.TextField(blank=True)
    command = models.TextField()
    arguments = models.TextField(blank=True)
    started_at = models.DateTimeField()
    gone_host = models.TextField(blank=True)

    class Meta:
        ordering = ("started_at", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("server", "number"), name="process_number_once_at_server"
            ),
        )

    def __str__(self) -> str:
        return f"{self.command} of {self.user} ({self.number})"

    @property
    def is_of_the_server(self) -> bool:
        """Whether it is replication or another part of the server itself."""
        background = (self.State.BACKGROUND, self.State.FINISHING)
        return self.state in background or self.command in OF_THE_SERVER

    @property
    def is_of_gone_host(self) -> bool:
        return bool(self.host) and self.gone_host == self.host


class OrphanRule(models.Model):
    """Which processes of a server count as orphans; a server without one has these.

    Hours are None where no such process counts. With `only_gone_hosts` those count
    alone whose client's host is gone. `is_automatic`: nobody has to ask.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="orphan_rule"
    )
    command_hours = models.PositiveIntegerField(null=True, blank=True, default=72)
    idle_hours = models.PositiveIntegerField(null=True, blank=True, default=72)
    only_gone_hosts = models.BooleanField(default=False)
    is_automatic = models.BooleanField(default=False)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="orphan_rule_hours_are_at_least_one",
                condition=(Q(command_hours__isnull=True) | Q(command_hours__gte=1))
                & (Q(idle_hours__isnull=True) | Q(idle_hours__gte=1)),
            ),
        )

    def __str__(self) -> str:
        return f"Orphans of {self.server}"


class AdviceRule(models.Model):
    """When clients and protections of a server get advice; one without it has these.

    `unused_days` since a client was used, `many_files` that one sync sent, and
    `many_protections` lines.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="advice_rule"
    )
    unused_days = models.PositiveIntegerField(default=90)
    many_files = models.PositiveIntegerField(default=100_000)
    many_protections = models.PositiveIntegerField(default=1_000)

    class Meta:
        constraints = (
            models.CheckConstraint(
                name="advice_rule_numbers_are_at_least_one",
                condition=Q(unused_days__gte=1)
                & Q(many_files__gte=1)
                & Q(many_protections__gte=1),
            ),
        )

    def __str__(self) -> str:
        return f"Advice for {self.server}"

    @classmethod
    def of(cls, server: PerforceServer) -> AdviceRule:
        """Return a server's rule; one that has none gets the usual one, unsaved."""
        rule: AdviceRule | None = getattr(server, "advice_rule", None)
        return rule if rule is not None else cls(server=server)


class ClientListing(models.Model):
    """The last listing of a server's clients.

    `read_at` is None before the first that succeeded; `trouble` says why the last one
    failed, "" if it did not. `opened_files` of all clients are counted up to a bound.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="client_listing"
    )
    read_at = models.DateTimeField(null=True)
    trouble = models.TextField(blank=True)
    opened_files = models.PositiveIntegerField(default=0)

    def __str__(self) -> str:
        return f"Clients of {self.server}"


class ListedClient(models.Model):
    """A client of a server as last listed, without those that Cloneyard made.

    `kind` is its type, "" for a usual one. `whole_lines` of its view map a whole depot;
    `view_read_at` is None as long as its view is not known. `synced_files` is what its
    largest sync sent by the log, None if the log tells of none.
    """

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="listed_clients"
    )
    name = models.TextField()
    owner = models.TextField(blank=True)
    host = models.TextField(blank=True)
    kind = models.TextField(blank=True)
    is_locked = models.BooleanField(default=False)
    updated_at = models.DateTimeField(null=True)
    accessed_at = models.DateTimeField(null=True)
    opened_files = models.PositiveIntegerField(default=0)
    locked_files = models.PositiveIntegerField(default=0)
    view_read_at = models.DateTimeField(null=True)
    maps_whole_depot = models.BooleanField(default=False)
    whole_lines = EvidenceField(default=list)
    synced_files = models.BigIntegerField(null=True)
    synced_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("server", "name"), name="listed_client_once_at_server"
            ),
            models.CheckConstraint(
                name="listed_client_sync_has_both",
                condition=Q(synced_files__isnull=True, synced_at__isnull=True)
                | Q(synced_files__isnull=False, synced_at__isnull=False),
            ),
        )
        indexes = (
            models.Index(
                fields=("server", "accessed_at"), name="listed_client_by_access"
            ),
        )

    def __str__(self) -> str:
        return self.name


class ProgramUse(models.Model):
    """A program that a user ran at a server, by its processes and its log.

    `release` is such as "2024.1", "" if the program does not say. `host` is where it
    last ran.
    """

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="program_uses"
    )
    program = models.TextField()
    release = models.TextField(blank=True)
    user = models.TextField()
    host = models.TextField(blank=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()

    class Meta:
        ordering = ("-last_seen_at", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("server", "program", "release", "user"),
                name="program_use_once_for_user_and_release",
            ),
        )

    def __str__(self) -> str:
        return f"{self.program} {self.release} of {self.user}"


class ProgramLogReading(models.Model):
    """Up to which of its commands a log was read for the programs in it."""

    log = models.OneToOneField(
        ServerLog, on_delete=models.CASCADE, related_name="program_reading"
    )
    command_id = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"Programs of {self.log}"


class ProgramRelease(models.Model):
    """Which releases of a program a server's users should have.

    An older one than `minimum` is too old, and one from there to `recommended` works.
    Either may be "", but not both.
    """

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="program_releases"
    )
    program = models.TextField()
    minimum = models.CharField(max_length=7, blank=True)
    recommended = models.CharField(max_length=7, blank=True)

    class Meta:
        ordering = ("program",)
        constraints = (
            models.UniqueConstraint(
                fields=("server", "program"), name="program_release_once_at_server"
            ),
            models.CheckConstraint(
                name="program_release_asks_for_something",
                condition=~Q(minimum="", recommended=""),
            ),
        )

    def __str__(self) -> str:
        return f"Releases of {self.program} at {self.server}"


class ProgramMail(RequestedMail):
    """A mail that asks a Perforce user to update programs.

    `outdated` are these, as its text names them.
    """

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="program_mails"
    )
    p4_user = models.TextField()
    outdated = EvidenceField(default=list)
    address = models.CharField(max_length=320, blank=True)

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("server", "p4_user"),
                condition=Q(claimed_at__isnull=True, trouble=""),
                name="program_mail_waits_once",
            ),
            models.CheckConstraint(
                name="program_mail_sent_was_claimed",
                condition=Q(sent_at__isnull=True) | Q(claimed_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"Mail to {self.p4_user}"


class ProcessEnding(models.Model):
    """A request to end a process, which is told from a later one by what it was."""

    class State(models.TextChoices):
        REQUESTED = "requested", "Requested"
        ENDED = "ended", "Ended"
        FAILED = "failed", "Not ended"

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="process_endings"
    )
    number = models.BigIntegerField()
    user = models.TextField()
    command = models.TextField()
    started_at = models.DateTimeField()
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    requested_at = models.DateTimeField(db_default=Now())
    state = models.CharField(max_length=9, choices=State, default=State.REQUESTED)
    message = models.TextField(blank=True)

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("server", "number"),
                condition=Q(state="requested"),
                name="process_ending_requested_once",
            ),
        )

    def __str__(self) -> str:
        return f"End {self.command} of {self.user} ({self.number})"


class ServerConfiguration(models.Model):
    """How a Perforce server is set up, as last read from it and from its host.

    `read_at` is None before the first reading that succeeded; `trouble` says why the
    last one failed, "" if it did not. `users` and `files` are None where the server
    does not count them, and so are the lines of protections and those with wide
    wildcards, of which a few are in `wide_paths`. `memory_bytes` is None as long as no
    worker runs on its host.
    """

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="configuration"
    )
    read_at = models.DateTimeField(null=True)
    trouble = models.TextField(blank=True)
    version = models.TextField(blank=True)
    users = models.BigIntegerField(null=True)
    files = models.BigIntegerField(null=True)
    protection_lines = models.BigIntegerField(null=True)
    wide_protections = models.BigIntegerField(null=True)
    wide_paths = EvidenceField(default=list)
    host = models.TextField(blank=True)
    host_read_at = models.DateTimeField(null=True)
    memory_bytes = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return f"Configuration of {self.server}"


class ServerSetting(models.Model):
    """A configurable of a server; `source` says where its value comes from."""

    configuration = models.ForeignKey(
        ServerConfiguration, on_delete=models.CASCADE, related_name="settings"
    )
    name = models.TextField()
    value = models.TextField(blank=True)
    source = models.TextField(blank=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("configuration", "name"), name="server_setting_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


class ServerFilesystem(models.Model):
    """Where a server keeps P4ROOT, P4JOURNAL, P4LOG, TEMP or a depot.

    `mount_options` are those that a worker on its host found, "" as long as none did.
    """

    configuration = models.ForeignKey(
        ServerConfiguration, on_delete=models.CASCADE, related_name="filesystems"
    )
    name = models.TextField()
    fs_type = models.TextField()
    mount_point = models.TextField(blank=True)
    percent_used = models.PositiveSmallIntegerField()
    mount_options = models.TextField(blank=True)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("configuration", "name"), name="server_filesystem_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} on {self.mount_point}"
