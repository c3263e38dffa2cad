"""What operations do with a workspace."""

from __future__ import annotations

from django.db import models


class WorkspaceOperation(models.TextChoices):
    PROVISION = "provision", "Provision"
    CHECK = "check", "Check for unsubmitted work"
    RETIRE = "retire", "Retire"
    RESTORE = "restore", "Restore"
    PURGE = "purge", "Purge"
