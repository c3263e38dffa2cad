"""Probes of Perforce servers: which commands, how long each took, and how much ran."""

from __future__ import annotations

import datetime as dt

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.accounts.requested_mails import RequestedMail
from provisioner.probes.commands import USUAL
from provisioner.sites.models import PerforceServer

KEPT_FOR = dt.timedelta(days=396)
# Of the label and the note of a moment.
LONGEST_LABEL = 100
LONGEST_NOTE = 2000


def usual_commands() -> str:
    return "\n".join(USUAL)


class ProbePlan(models.Model):
    """The commands that are timed at a server every 15 minutes, one a line."""

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="probe_plan"
    )
    is_on = models.BooleanField(default=True)
    commands = models.TextField(default=usual_commands)

    def __str__(self) -> str:
        return f"Probe of {self.server}"

    @property
    def lines(self) -> list[str]:
        return self.commands.splitlines()


class ProbeRun(models.Model):
    """One round of a probe's commands, or why there was none.

    `gap` is the reason, "" for a round. `lapse_seconds` is from the first command to
    the end of the last, None in a gap and where a command failed. `change` is the
    newest submitted change by then, None in a gap. `host` is where the commands ran.
    """

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="probe_runs"
    )
    at = models.DateTimeField()
    host = models.TextField(blank=True)
    lapse_seconds = models.FloatField(null=True)
    change = models.BigIntegerField(null=True)
    gap = models.TextField(blank=True)

    class Meta:
        ordering = ("-at", "-pk")
        constraints = (
            models.CheckConstraint(
                name="probe_run_gap_measures_nothing",
                condition=Q(gap="", change__isnull=False)
                | (~Q(gap="") & Q(lapse_seconds__isnull=True, change__isnull=True)),
            ),
        )
        indexes = (
            models.Index(fields=("server", "at"), name="probe_run_by_time"),
            models.Index(fields=("at",), name="probe_run_newest"),
        )

    def __str__(self) -> str:
        return f"Probe of {self.server} at {self.at:%Y-%m-%d %H:%M}"

    @property
    def just_after(self) -> dt.datetime:
        """A time before which no other round of the server begins."""
        return self.at + dt.timedelta(seconds=1)


class ProbeTime(models.Model):
    """How long one command of a round took, or the error that it ended with."""

    run = models.ForeignKey(ProbeRun, on_delete=models.CASCADE, related_name="times")
    command = models.TextField()
    seconds = models.FloatField(null=True)
    error = models.TextField(blank=True)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("run", "command"), name="probe_time_once_a_round"
            ),
            models.CheckConstraint(
                name="probe_time_has_seconds_or_error",
                condition=Q(seconds__isnull=False, error="")
                | (Q(seconds__isnull=True) & ~Q(error="")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.command} in {self.run}"


class ProbeWeek(models.Model):
    """What a server's rounds took in a week (UTC) that is over, in seconds.

    `command` is one of a plan, or `queries.LAPSE`. `gaps` are rounds that there were
    not, and `failed` those that ended with an error. No number: nothing was measured.
    """

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="probe_weeks"
    )
    begin = models.DateField(help_text="A Monday.")
    command = models.TextField()
    rounds = models.PositiveIntegerField()
    gaps = models.PositiveIntegerField()
    failed = models.PositiveIntegerField()
    average = models.FloatField(null=True)
    median = models.FloatField(null=True)
    maximum = models.FloatField(null=True)
    minimum = models.FloatField(null=True)

    class Meta:
        ordering = ("-begin", "server", "command")
        constraints = (
            models.UniqueConstraint(
                fields=("server", "begin", "command"), name="probe_week_once"
            ),
        )

    def __str__(self) -> str:
        return f"{self.command} at {self.server} in the week of {self.begin}"


class ProcessCount(models.Model):
    """How many commands ran at a server. There is no row for a time without reading."""

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="process_counts"
    )
    at = models.DateTimeField()
    processes = models.PositiveIntegerField()

    class Meta:
        ordering = ("-at", "-pk")
        indexes = (models.Index(fields=("server", "at"), name="process_count_by_time"),)

    def __str__(self) -> str:
        return f"{self.processes} at {self.server}"


class ReportMail(RequestedMail):
    """A report on two periods, to be mailed to a person as it was then."""

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="report_mails"
    )
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    subject = models.CharField(max_length=200)
    text = models.TextField()

    class Meta:
        ordering = ("-pk",)
        constraints = (
            models.CheckConstraint(
                name="report_mail_sent_was_claimed",
                condition=Q(sent_at__isnull=True) | Q(claimed_at__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.subject} to {self.person}"

    @property
    def outcome(self) -> str:
        """What became of it, as a sentence."""
        if self.trouble:
            return f"Not sent: {self.trouble}"
        if self.sent_at is not None:
            return "Sent."
        if self.claimed_at is not None:
            return "Not known: the connection broke while it was sent."
        return "Waits for the mail server."


class Moment(models.Model):
    """Something that may have changed how fast a server is: an upgrade, new disks."""

    server = models.ForeignKey(
        PerforceServer, on_delete=models.CASCADE, related_name="moments"
    )
    label = models.CharField(max_length=LONGEST_LABEL)
    at = models.DateTimeField()
    note = models.TextField(blank=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("-at", "-pk")

    def __str__(self) -> str:
        return f"{self.label} ({self.server})"
