"""Bisections: the search for the first bad change, and its steps."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from provisioner.accounts.models import ApiToken, User
from provisioner.catalog.models import Template
from provisioner.workspaces.models import Workspace

WAITS_FOR_VERDICT = "waits_for_verdict"
INTERRUPTED = "step_interrupted"


class BisectionOperation(models.TextChoices):
    STEP = "bisection_step", "Test a change"


class Verdict(models.TextChoices):
    """The verdict on a change. AGAIN: none, so another clone tests it."""

    GOOD = "good", "Good"
    BAD = "bad", "Bad"
    SKIP = "skip", "Cannot be told"
    AGAIN = "again", "Try it again"


class Bisection(models.Model):
    """A search between a good and a bad change of a template for the first bad one.

    It is among the `changes`, which are known from `changes_read_at` on. With `command`
    its exit code is the verdict, otherwise people give it.
    """

    class State(models.TextChoices):
        RUNNING = "running", "Under way"
        FOUND = "found", "Found"
        UNDECIDED = "undecided", "Cannot be told"
        STOPPED = "stopped", "Stopped"
        FAILED = "failed", "Failed"

    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, related_name="bisections"
    )
    owner = models.ForeignKey(User, on_delete=models.PROTECT, related_name="bisections")
    token = models.ForeignKey(
        ApiToken,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        help_text="The API token that requested it, if it still exists.",
    )
    good = models.BigIntegerField(help_text="A change that is known to be good.")
    bad = models.BigIntegerField(help_text="A later one that is known to be bad.")
    command = models.TextField(
        blank=True, help_text="Run by /bin/sh in each clone. Empty: people decide."
    )
    state = models.CharField(max_length=10, choices=State, default=State.RUNNING)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    changes_read_at = models.DateTimeField(
        null=True, blank=True, help_text="When the server had listed the changes."
    )
    first_bad = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.CheckConstraint(
                name="bisection_good_is_before_bad",
                condition=Q(good__gt=0) & Q(good__lt=F("bad")),
            ),
            models.CheckConstraint(
                name="bisection_ended_has_ended_at",
                condition=Q(state="running", ended_at__isnull=True)
                | (~Q(state="running") & Q(ended_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="bisection_found_among_known_changes",
                condition=~Q(state__in=("found", "undecided"))
                | Q(changes_read_at__isnull=False),
            ),
            models.CheckConstraint(
                name="bisection_found_has_first_bad",
                condition=Q(state="found", first_bad__isnull=False)
                | (~Q(state="found") & Q(first_bad__isnull=True)),
            ),
        )
        indexes = (
            models.Index(
                fields=("id",), condition=Q(state="running"), name="bisection_running"
            ),
        )

    def __str__(self) -> str:
        return f"{self.template} between {self.good} and {self.bad}"

    @property
    def is_running(self) -> bool:
        return self.state == self.State.RUNNING


class BisectionChange(models.Model):
    """A change submitted to the view after the good one and up to the bad one."""

    bisection = models.ForeignKey(
        Bisection, on_delete=models.CASCADE, related_name="changes"
    )
    change = models.BigIntegerField()
    user = models.CharField(max_length=1024)
    title = models.TextField(blank=True)

    class Meta:
        ordering = ("change",)
        constraints = (
            models.UniqueConstraint(
                fields=("bisection", "change"), name="bisection_change_once"
            ),
        )

    def __str__(self) -> str:
        return f"change {self.change}"


class BisectionStep(models.Model):
    """One change, tested in a clone of its own. Without a `verdict` it is running.

    `decided_by` is None if the command decided; `reason` says how. A clone in which the
    command was started is not used again.
    """

    bisection = models.ForeignKey(
        Bisection, on_delete=models.PROTECT, related_name="steps"
    )
    workspace = models.OneToOneField(
        Workspace, on_delete=models.PROTECT, related_name="bisection_step"
    )
    change = models.BigIntegerField()
    command_started_at = models.DateTimeField(null=True, blank=True)
    verdict = models.CharField(max_length=5, choices=Verdict, blank=True)
    decided_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    decided_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("bisection",),
                condition=Q(verdict=""),
                name="bisection_step_one_open_per_bisection",
            ),
            models.CheckConstraint(
                name="bisection_step_decided_has_decided_at",
                condition=Q(verdict="", decided_at__isnull=True)
                | (~Q(verdict="") & Q(decided_at__isnull=False)),
            ),
        )

    def __str__(self) -> str:
        return f"change {self.change}"
