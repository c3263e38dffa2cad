"""Shapes of operations and their steps."""

from __future__ import annotations

from typing import Any, TypedDict

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from provisioner.api.fields import WorkedOutOnce
from provisioner.engine import kinds, subjects
from provisioner.engine.models import Operation, Step
from provisioner.engine.waits import Wait, wait_of
from provisioner.engine.workflow import title_of


class Progress(TypedDict, total=False):
    """The progress of a running step, or the last progress of an ended one.

    `phase` of a sync is "planning", "receiving" or "finishing". `seconds_left` is null
    while it is unknown.
    """

    done: int
    total: int
    unit: str
    text: str
    phase: str
    bytes: int
    bytes_total: int
    files_per_second: float
    bytes_per_second: float
    seconds_left: float | None


class WaitSerializer(serializers.Serializer[Wait]):
    """Why a queued step has not started: others come first, or a pause."""

    server = serializers.CharField(help_text="The name of the Perforce server.")
    before = serializers.IntegerField(help_text="The number of steps before it.")
    is_paused = serializers.BooleanField()
    sentence = serializers.CharField(help_text="All of this as a sentence.")


class StepSerializer(WorkedOutOnce, serializers.ModelSerializer[Step]):
    title = serializers.SerializerMethodField()
    progress = serializers.SerializerMethodField(help_text="Any of these, or none.")
    seconds = serializers.FloatField(
        allow_null=True, help_text="How long its last attempt took."
    )
    wait = serializers.SerializerMethodField(
        help_text="null unless it waits for a slot at its Perforce server."
    )

    class Meta:
        model = Step
        fields = (
            "name",
            "title",
            "state",
            "attempt",
            "started_at",
            "ended_at",
            "seconds",
            "progress",
            "wait",
            "exit_code",
            "error_code",
            "error_message",
        )
        read_only_fields = fields

    @extend_schema_field(WaitSerializer(allow_null=True))
    def get_wait(self, step: Step) -> Any:
        wait = wait_of(step)
        return None if wait is None else WaitSerializer(wait).data

    def get_title(self, step: Step) -> str:
        return title_of(step)

    def get_progress(self, step: Step) -> Progress:
        progress: Progress = step.progress
        return progress


class KindField(serializers.ChoiceField):
    """The kind of an operation. Features register the kinds."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=kinds.choices(), read_only=True, **options)


class OperationSerializer(serializers.ModelSerializer[Operation]):
    """An operation; exactly one of the subject ids is not null."""

    kind = KindField()
    requested_by = serializers.CharField(source="requested_by.username")
    findings = serializers.DictField(
        child=serializers.JSONField(),
        allow_null=True,
        help_text="What it found, such as unsubmitted work by kind: what stopped a "
        "retirement, or what it rescued or discarded.",
    )
    steps = StepSerializer(many=True)

    class Meta:
        model = Operation
        fields = (
            "id",
            "kind",
            "state",
            "status_code",
            "status_message",
            "findings",
            "requested_by",
            "request_id",
            "created_at",
            "ended_at",
            "steps",
        )
        read_only_fields = fields

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        ids = {
            kind.field: serializers.IntegerField(
                source=f"subject_ids.{kind.field}", allow_null=True, read_only=True
            )
            for kind in subjects.kinds()
        }
        return {**super().get_fields(), **ids}


class OperationSummarySerializer(WorkedOutOnce, serializers.ModelSerializer[Operation]):
    """The newest operation, with enough for a progress line."""

    kind = KindField()
    steps_total = serializers.SerializerMethodField()
    steps_done = serializers.SerializerMethodField()
    current_steps = serializers.SerializerMethodField(
        help_text="Steps that are queued, running, to be retried, or failed."
    )

    class Meta:
        model = Operation
        fields = ("id", "kind", "state", "steps_total", "steps_done", "current_steps")
        read_only_fields = fields

    def get_steps_total(self, operation: Operation) -> int:
        return len(operation.steps.all())

    def get_steps_done(self, operation: Operation) -> int:
        settled = (Step.State.DONE, Step.State.SKIPPED)
        return sum(step.state in settled for step in operation.steps.all())

    @extend_schema_field(StepSerializer(many=True))
    def get_current_steps(self, operation: Operation) -> Any:
        idle = (Step.State.WAITING, Step.State.DONE, Step.State.SKIPPED)
        current = [step for step in operation.steps.all() if step.state not in idle]
        return StepSerializer(current, many=True).data


class OperationListQuery(serializers.Serializer[Any]):
    """Operations about one subject, by its id, such as `?workspace=12`."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {
            kind.field: serializers.IntegerField(required=False, min_value=1)
            for kind in subjects.kinds()
        }
