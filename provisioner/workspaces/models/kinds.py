"""The kinds of operations on a workspace."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import models

from provisioner.engine.models import Parameters


class WorkspaceOperation(models.TextChoices):
    PROVISION = "provision", "Provision"
    CHECK = "check", "Check for unsubmitted work"
    RETIRE = "retire", "Retire"
    RESTORE = "restore", "Restore"
    PURGE = "purge", "Purge"
    SPLIT = "split", "Make independent of its snapshot"
    STOP_SPLIT = "stop_split", "Stop the split"
    COMPARE = "compare_snapshot", "Compare with a snapshot"
    TAKE_BACK = "take_back", "Take back from a snapshot"
    RESTORE_SNAPSHOT = "restore_snapshot", "Restore to a snapshot"


SPLITS = (WorkspaceOperation.SPLIT, WorkspaceOperation.STOP_SPLIT)
FROM_SNAPSHOTS = (WorkspaceOperation.TAKE_BACK, WorkspaceOperation.RESTORE_SNAPSHOT)
"""They change files of a ready workspace, so an earlier check no longer holds."""

OF_SNAPSHOTS = (WorkspaceOperation.COMPARE, *FROM_SNAPSHOTS)
BESIDE_WORK = (*SPLITS, *OF_SNAPSHOTS)
"""The workspace stays ready meanwhile, and people go on working in it."""


@dataclass(frozen=True, kw_only=True)
class RetireParameters(Parameters):
    """How to retire a workspace. With `purge`, it does not go to the trash."""

    unsubmitted: str
    purge: bool = False
