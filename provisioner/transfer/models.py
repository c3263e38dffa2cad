"""Transfers of work from one workspace to a newer one."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from provisioner.lib.fields import EvidenceField, NameField, NamesField
from provisioner.lib.storable import shown
from provisioner.workspaces.models import Workspace


class TransferOperation(models.TextChoices):
    TRANSFER = "transfer", "Transfer work"


class Transfer(models.Model):
    """A transfer of work into a workspace, and its outcome.

    `plan` is a `steps.plan.Plan`, from `planned_at` on. `shelves` are the shelved
    changes of the temporary client, [{"change", "was", "user", "files"}]; all are made
    at `shelved_at`. `changes` maps pending changes of the source to their replacements.
    `conflicts_left` is the number of conflicts once all was compared.
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


class ConflictQuerySet(models.QuerySet["Conflict"]):
    """Queries for conflicts."""

    def paths(self) -> set[str]:
        """Return the paths that they are about."""
        return set(self.values_list("path", flat=True))

    def to_copy(self) -> ConflictQuerySet:
        """Keep files that were not opened, whose content was not copied yet."""
        return self.filter(kind__in=NOT_OPENED, is_copied=None)


class Conflict(models.Model):
    """A conflict of a transfer that a person decides; see `steps/conflicts.py`.

    `path` is a depot path, or one from the root. `commands` are [{"run", "does"}].
    `is_copied` says of a file that was not opened whether its content is in the new
    workspace, under another name; None until that was tried.
    """

    class Stage(models.IntegerChoices):
        """What found it."""

        SHELVE = 1
        OPEN = 2
        MERGE = 3
        COPY = 4
        PROOF = 5

    class Kind(models.TextChoices):
        RESOLVE = "resolve", "Both sides changed it"
        DELETED_THERE = "deleted_there", "Opened here, deleted by others"
        CHANGED_THERE = "changed_there", "Deleted here, changed by others"
        EXCLUSIVE = "exclusive", "Only one client may open it"
        NOT_OPENED = "not_opened", "Could not be opened"
        HISTORY = "history", "Arrived without its integration history"
        BUILT_THERE = "built_there", "A build output has its name"
        KEPT_ASIDE = "kept_aside", "Another untracked file has its name"
        NOT_COPIED = "not_copied", "Could not be copied"
        DIFFERS = "differs", "Differs from the plan"

    transfer = models.ForeignKey(
        Transfer, on_delete=models.CASCADE, related_name="conflicts"
    )
    stage = models.PositiveSmallIntegerField(choices=Stage)
    kind = models.CharField(max_length=13, choices=Kind)
    path = NameField()
    sentence = NameField()
    commands = EvidenceField(default=list, blank=True)
    is_copied = models.BooleanField(null=True, blank=True)

    objects = ConflictQuerySet.as_manager()

    class Meta:
        ordering = ("stage", "id")
        constraints = (
            models.CheckConstraint(
                name="conflict_copied_was_not_opened",
                condition=Q(is_copied__isnull=True)
                | Q(kind__in=("exclusive", "not_opened")),
            ),
        )

    def __str__(self) -> str:
        return f"{self.path}: {self.get_kind_display()}"

    @property
    def shown_path(self) -> str:
        return shown(self.path)

    @property
    def shown_sentence(self) -> str:
        return shown(self.sentence)


NOT_OPENED = (Conflict.Kind.EXCLUSIVE, Conflict.Kind.NOT_OPENED)
