"""Serializers of bisections."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import IdOrName, Name, Number, Text
from provisioner.api.waiting import LONGEST_WAIT_SECONDS
from provisioner.bisect.actions import LARGEST_CHANGE, LONGEST_COMMAND
from provisioner.bisect.models import Bisection, Verdict


def _change(help_text: str) -> Number:
    return Number(min_value=1, max_value=LARGEST_CHANGE, help_text=help_text)


class BisectionCreateSerializer(serializers.Serializer[Any]):
    """The range of changes to search, and how to test them."""

    template = IdOrName(help_text="Its id or its name.")
    site = Name(required=False, help_text="Needed if several sites have that template.")
    good = _change("A change known to be good.")
    bad = _change("A later change known to be bad.")
    command = Text(
        default="",
        allow_blank=True,
        max_length=LONGEST_COMMAND,
        help_text="Run by /bin/sh in each clone, as its owner. Exit code 0: good, 125: "
        "skip, any other up to 127: bad. Empty: you send a verdict for each step.",
    )


class VerdictSerializer(serializers.Serializer[Any]):
    change = _change("The change being tested: `current`.")
    verdict = serializers.ChoiceField(
        choices=Verdict.choices,
        help_text="`skip`: it cannot be tested. `again`: test it in a new clone.",
    )


class SuspectSerializer(serializers.Serializer[Any]):
    change = serializers.IntegerField()
    user = serializers.CharField()
    title = serializers.CharField(help_text="The first line of its description.")


class BisectionStepSerializer(serializers.Serializer[Any]):
    """One change, tested in its own clone."""

    change = serializers.IntegerField(source="step.change")
    user = serializers.CharField(source="submitted.user", default="")
    title = serializers.CharField(source="submitted.title", default="")
    verdict = serializers.ChoiceField(
        source="step.verdict",
        choices=[("", "Under way"), *Verdict.choices],
        help_text="Empty while it runs or waits for a verdict.",
    )
    decided_by = serializers.CharField(
        source="step.decided_by.username",
        default=None,
        allow_null=True,
        help_text="null: the command.",
    )
    reason = serializers.CharField(source="step.reason")
    snapshot = serializers.CharField(
        source="step.workspace.snapshot.name", help_text="The snapshot cloned."
    )
    snapshot_change = serializers.IntegerField()
    workspace_id = serializers.IntegerField(source="step.workspace_id")
    workspace_state = serializers.CharField(source="step.workspace.state")
    path = serializers.CharField(source="step.workspace.path")
    operation_id = serializers.IntegerField(
        allow_null=True, help_text="Its step `run` has the command's log."
    )
    created_at = serializers.DateTimeField(source="step.created_at")
    decided_at = serializers.DateTimeField(source="step.decided_at", allow_null=True)


class BisectionSerializer(serializers.Serializer[Any]):
    """A search for the first bad change."""

    id = serializers.IntegerField(source="bisection.pk")
    template = serializers.CharField(source="bisection.template.name")
    template_id = serializers.IntegerField(source="bisection.template_id")
    owner = serializers.CharField(source="bisection.owner.username")
    good = serializers.IntegerField(source="bisection.good")
    bad = serializers.IntegerField(source="bisection.bad")
    command = serializers.CharField(source="bisection.command")
    state = serializers.ChoiceField(
        source="bisection.state", choices=Bisection.State.choices
    )
    status_code = serializers.CharField(
        source="bisection.status_code",
        help_text="`waits_for_verdict`: send a verdict on `current`. "
        "`too_many_commands`: continues when another of the owner's has ended.",
    )
    status_message = serializers.CharField(source="headline")
    changes_count = serializers.IntegerField(
        allow_null=True, help_text="null until Perforce has answered."
    )
    suspects_count = serializers.IntegerField(
        allow_null=True, help_text="Changes that may still be the first bad one."
    )
    steps_left = serializers.IntegerField(
        allow_null=True, help_text="At most, if none is skipped."
    )
    first_bad = SuspectSerializer(allow_null=True)
    current = BisectionStepSerializer(allow_null=True)
    steps = BisectionStepSerializer(many=True)
    created_at = serializers.DateTimeField(source="bisection.created_at")
    ended_at = serializers.DateTimeField(source="bisection.ended_at", allow_null=True)


class BisectionWaitQuery(serializers.Serializer[Any]):
    wait = serializers.IntegerField(
        min_value=0,
        max_value=LONGEST_WAIT_SECONDS,
        default=0,
        help_text="Seconds to hold the answer until the search has ended or waits for "
        "a verdict. If too many answers are held already, yours comes immediately: 202 "
        "with `Retry-After`.",
    )
