"""Transfers of work from one workspace to a newer one."""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from provisioner.lib.fields import EvidenceField, NamesField
from provisioner.workspaces.models import Workspace


class TransferOperation(models.TextChoices):
    TRANSFER = "transfer", "Transfer work"


class Transfer(models.Model):
    """A transfer of work into a workspace, and its outcome.

    `plan` is a `steps.plan.Plan`, from `planned_at` on. `shelves` are the shelved
    changes of the temporary client, [{"change", "was", "user", "files"}]; all are made
    at `shelved_at`. `changes` maps pending changes of the source to their replacements.
    `conflicts` are [{"kind", "path", "sentence", "commands"}], by step; see
    `steps/conflicts.py`. `conflicts_left` is their number once all was compared.
    """

    workspace = models.OneToOneField(
        Workspace, on_delete=models.PROTECT, related_name="transfer"
    )
    source = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="transfers"
    )
    takes_changed = models.BooleanField(
        default=True, help_text="Files changed without opening them, as edits."
    )
    takes_untracked = models.BooleanField(
        default=False, help_text="Files that Perforce does not know."
    )
    retires_source = models.BooleanField(
        default=True,
        help_text="The source goes to the trash if there are no conflicts.",
    )
    plan = NamesField(null=True, blank=True)
    planned_at = models.DateTimeField(null=True, blank=True)
    shelves = NamesField(default=list, blank=True)
    shelved_at = models.DateTimeField(null=True, blank=True)
    changes = NamesField(default=dict, blank=True)
    conflicts = NamesField(default=dict, blank=True)
    conflicts_left = models.PositiveIntegerField(null=True, blank=True)
    counts = EvidenceField(default=dict, blank=True, help_text="What arrived, by kind.")
    outcome = models.TextField(
        blank=True, help_text="What happened to the source, in a sentence."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    transferred_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.CheckConstraint(
                name="transfer_is_between_two", condition=~Q(workspace=F("source"))
            ),
            models.CheckConstraint(
                name="transfer_planned_has_plan",
                condition=Q(planned_at__isnull=True, plan__isnull=True)
                | Q(planned_at__isnull=False, plan__isnull=False),
            ),
            models.CheckConstraint(
                name="transfer_shelved_was_planned",
                condition=Q(shelved_at__isnull=True) | Q(planned_at__isnull=False),
            ),
            models.CheckConstraint(
                name="transfer_done_was_shelved_and_compared",
                condition=Q(transferred_at__isnull=True)
                | Q(shelved_at__isnull=False, conflicts_left__isnull=False),
            ),
        )

    def __str__(self) -> str:
        return f"{self.source} into {self.workspace}"

    @property
    def can_be_aborted(self) -> bool:
        """Whether its workspace can still be retired with all copies."""
        return self.workspace.ready_at is None and not self.workspace.is_put_away

    @property
    def all_conflicts(self) -> list[dict[str, Any]]:
        """Return the conflicts left for a person, file by file."""
        return [c for name in sorted(self.conflicts) for c in self.conflicts[name]]
