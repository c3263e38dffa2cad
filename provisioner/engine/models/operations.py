"""Operations, with the record of their steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.engine import kinds
from provisioner.engine.models.subjects import Subject
from provisioner.lib.fields import EvidenceField, NamesField


class Operation(models.Model):
    """A request that takes a while, with the record of its steps."""

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        SUCCEEDED = "succeeded", "Succeeded"
        REFUSED = "refused", "Refused"
        FAILED = "failed", "Failed"
        CANCELED = "canceled", "Canceled"

    kind = models.CharField(max_length=20)
    subject = models.ForeignKey(
        Subject, on_delete=models.PROTECT, related_name="operations"
    )
    is_background = models.BooleanField(
        default=False, help_text="Nobody requested it: it comes after all requests."
    )
    state = models.CharField(max_length=12, choices=State, default=State.RUNNING)
    parameters = EvidenceField(default=dict, help_text="What was requested.")
    requested_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    findings = EvidenceField(
        null=True, blank=True, help_text="Unsubmitted work that was found, by kind."
    )
    request_id = models.CharField(
        max_length=64,
        blank=True,
        editable=False,
        help_text="The request that started it, as in the logs.",
    )
    traceparent = models.CharField(
        max_length=55,
        blank=True,
        editable=False,
        help_text="The span that its steps belong to, as W3C Trace Context names it.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.CheckConstraint(
                name="operation_ended_has_ended_at",
                condition=Q(state="running", ended_at__isnull=True)
                | (~Q(state="running") & Q(ended_at__isnull=False)),
            ),
            models.UniqueConstraint(
                fields=("subject",),
                condition=Q(state="running"),
                name="operation_one_running_per_subject",
            ),
        )
        indexes = (
            # With what charts count: a row with its JSON is ten times as large.
            models.Index(
                fields=("-created_at", "-id"),
                include=("kind", "state", "ended_at", "subject"),
                name="operation_by_age",
            ),
            models.Index(
                fields=("-ended_at", "-id"),
                include=("kind", "state", "created_at", "subject"),
                name="operation_by_end",
            ),
            models.Index(
                fields=("-ended_at",),
                condition=Q(state="failed"),
                name="operation_failed_by_end",
            ),
            models.Index(fields=("kind", "subject"), name="operation_by_kind"),
        )

    def __str__(self) -> str:
        return f"{self.kind_title} {self.subject}"

    @property
    def kind_title(self) -> str:
        """The title of its kind."""
        return kinds.title_of(self.kind)

    @property
    def seconds(self) -> float | None:
        """How long it took, None while it runs."""
        if self.ended_at is None:
            return None
        return (self.ended_at - self.created_at).total_seconds()

    @property
    def subject_ids(self) -> dict[str, int]:
        """The id of its subject, by kind."""
        return {self.subject.kind: self.subject.row.pk}

    @property
    def site(self) -> Any:
        """The site of its subject."""
        return self.subject.row.site


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """The parameters of an operation: the base of each kind's dataclass.

    The operation's row stores what differs from the defaults.
    """

    @classmethod
    def of(cls, operation: Operation) -> Self:
        return cls(**operation.parameters)

    def as_json(self) -> dict[str, Any]:
        return {
            field.name: value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }


class PerforceUse(models.TextChoices):
    """What a step does to its Perforce server; see engine/slots.py."""

    NONE = "", "Nothing"
    LIGHT = "light", "Short commands"
    SHORT = "short", "A flush, or a comparison: counts against the budget"
    LONG = "long", "A sync of a template: counts, and leaves room for others"


class StepQuerySet(models.QuerySet["Step"]):
    """Queries for steps."""

    def committed(self) -> StepQuerySet:
        """Keep commit points that were started, however their attempts ended."""
        return self.filter(is_commit_point=True, attempt__gt=0)


class Step(models.Model):
    """One step of an operation; its StepSpec is in workflow.py.

    `progress` is {"done", "total", "unit", "text"}, any of them absent.
    `ontap_job_uuid` is the ONTAP job that it waits for. `flush_place` is how far its
    attempts have flushed: a FlushPlace, or {}. `result` is a StepResult, if it has one.

    A step that is queued without a job waits for a slot at its Perforce server.
    """

    class State(models.TextChoices):
        WAITING = "waiting", "Waiting"
        QUEUED = "queued", "Queued"
        RUNNING = "running", "Running"
        RETRYING = "retrying", "Will be retried"
        DONE = "done", "Done"
        SKIPPED = "skipped", "Not needed"
        FAILED = "failed", "Failed"

    operation = models.ForeignKey(
        Operation, on_delete=models.PROTECT, related_name="steps"
    )
    name = models.CharField(max_length=40)
    position = models.PositiveSmallIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    attempt = models.PositiveIntegerField(default=0)
    is_commit_point = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Once it has started, its operation cannot be taken back.",
    )
    job_id = models.BigIntegerField(null=True, blank=True)
    perforce_server = models.ForeignKey(
        "sites.PerforceServer",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )
    perforce_use = models.CharField(
        max_length=5,
        choices=PerforceUse,
        default=PerforceUse.NONE,
        db_default=PerforceUse.NONE,
        blank=True,
    )
    queued_at = models.DateTimeField(null=True, blank=True)
    first_started_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    retry_at = models.DateTimeField(null=True, blank=True)
    progress = EvidenceField(default=dict)
    ontap_job_uuid = models.CharField(max_length=36, blank=True)
    flush_place = models.JSONField(default=dict, blank=True)
    result = NamesField(null=True, blank=True)
    has_rejected = models.BooleanField(
        default=False, help_text="It ran, and rejected what it checked."
    )
    exit_code = models.IntegerField(
        null=True,
        help_text="Exit code of its command; negative: ended by that signal.",
    )
    error_code = models.CharField(max_length=60, blank=True)
    error_message = models.TextField(blank=True)

    # When it was asked whether this attempt may act, if it may: see states.start_step.
    leave_asked_at: float | None = None
    # What this attempt writes in the transaction that ends it: see StepRun.when_done.
    when_done: tuple[Callable[[], object], ...] = ()

    objects = StepQuerySet.as_manager()

    class Meta:
        ordering = ("operation", "position")
        constraints = (
            models.UniqueConstraint(
                fields=("operation", "name"), name="step_name_unique_in_operation"
            ),
            models.CheckConstraint(
                name="step_running_has_started_at",
                condition=~Q(state__in=("running", "retrying", "done"))
                | Q(started_at__isnull=False),
            ),
            models.CheckConstraint(
                name="step_settled_has_ended_at",
                condition=~Q(state__in=("done", "skipped", "failed"))
                | Q(ended_at__isnull=False),
            ),
            models.CheckConstraint(
                name="step_that_uses_perforce_says_where",
                condition=Q(perforce_use="", perforce_server__isnull=True)
                | (~Q(perforce_use="") & Q(perforce_server__isnull=False)),
            ),
            models.CheckConstraint(
                name="step_queued_without_job_uses_perforce",
                condition=~Q(state="queued", job_id__isnull=True) | ~Q(perforce_use=""),
            ),
            models.CheckConstraint(
                name="step_failed_has_reason",
                condition=~Q(state__in=("failed", "retrying")) | ~Q(error_message=""),
            ),
        )
        indexes = (
            models.Index(
                fields=("queued_at",),
                condition=Q(state__in=("queued", "running", "retrying")),
                name="step_in_flight",
            ),
            models.Index(
                fields=("perforce_server", "perforce_use"),
                condition=Q(
                    state__in=("queued", "running"), perforce_server__isnull=False
                ),
                name="step_at_perforce",
            ),
            models.Index(
                fields=("first_started_at",),
                include=("queued_at", "perforce_server"),
                condition=Q(
                    perforce_use__in=("short", "long"),
                    first_started_at__isnull=False,
                ),
                name="step_begun_at_perforce",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def seconds(self) -> float | None:
        """How long its last attempt took, None while it runs or never ran."""
        if self.started_at is None or self.ended_at is None:
            return None
        return (self.ended_at - self.started_at).total_seconds()

    @property
    def has_failed(self) -> bool:
        """Whether it failed, or its tests rejected the snapshot."""
        return self.state == Step.State.FAILED or self.has_rejected

    @property
    def log_path(self) -> Path:
        """The path of the step's log.

        The name contains the time as well: once an older backup of the database is
        restored, numbers repeat while the logs still exist.
        """
        asked_at = f"{self.operation.created_at:%Y%m%dT%H%M%S%f}"
        name = f"operation-{self.operation_id}-{asked_at}-{self.name}.log"
        return Path(settings.LOG_DIR) / name
