"""Shapes of query strings: what may stand behind the ? of an address."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from provisioner.api.fields import WorkedOutOnce
from provisioner.api.waiting import LONGEST_WAIT_SECONDS
from provisioner.engine.models import Unsaved
from provisioner.workspaces.models import Workspace


class WaitQuery(WorkedOutOnce):
    wait = serializers.IntegerField(
        min_value=0,
        max_value=LONGEST_WAIT_SECONDS,
        default=0,
        help_text="Seconds to hold the answer until the workspace has settled. "
        "The status says what was asked for; the state in the body, how it ended. "
        "Where too many answers are held already, yours comes at once: 202 with "
        "`Retry-After`.",
    )


class BisectionWaitQuery(serializers.Serializer[Any]):
    wait = serializers.IntegerField(
        min_value=0,
        max_value=LONGEST_WAIT_SECONDS,
        default=0,
        help_text="Seconds to hold the answer until it has ended, or waits for a "
        "verdict. Where too many answers are held already, yours comes at once: 202 "
        "with `Retry-After`.",
    )


class WorkspaceRetireQuery(WaitQuery):
    unsaved = serializers.ChoiceField(
        choices=Unsaved.choices,
        default=Unsaved.REFUSE,
        help_text="What becomes of work that is not submitted.",
    )
    purge = serializers.BooleanField(
        default=False, help_text="Destroy it at once: the trash does not keep it."
    )


class WorkspaceListQuery(serializers.Serializer[Any]):
    state = serializers.ChoiceField(choices=Workspace.State.choices, required=False)
    template = serializers.CharField(required=False, help_text="Its id or its name.")
    name = serializers.CharField(required=False)
    site = serializers.CharField(required=False, help_text="Its name.")
    owner = serializers.CharField(required=False, help_text="A username.")
    retired = serializers.BooleanField(
        default=True, help_text="false: without those that are gone for good."
    )


class TemplateListQuery(serializers.Serializer[Any]):
    name = serializers.CharField(required=False)
    site = serializers.CharField(required=False)


class SnapshotListQuery(serializers.Serializer[Any]):
    template = serializers.CharField(required=False, help_text="Its id or its name.")


class OperationListQuery(serializers.Serializer[Any]):
    workspace = serializers.IntegerField(required=False, min_value=1)
    template = serializers.IntegerField(required=False, min_value=1)
