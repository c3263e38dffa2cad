"""Rescues: work saved from workspaces before they were retired."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.engine.models import Operation
from provisioner.lib.fields import EvidenceField, NamesField
from provisioner.workspaces.models.workspaces import Workspace


class RescueQuerySet(models.QuerySet["Rescue"]):
    def with_work(self) -> RescueQuerySet:
        """Keep those that saved somebody's work."""
        return self.filter(is_complete=True, has_work=True)

    def last_archive(self, workspace: Workspace) -> Rescue | None:
        """Return the workspace's last rescue with an archive, or None."""
        return self.filter(
            workspace=workspace, is_complete=True, has_archive=True
        ).first()


class Rescue(models.Model):
    """One rescue: where the unsubmitted work of a workspace is now.

    If it `has_archive`, that is in `directory`, below the site's rescue root, with its
    manifest and checksums. `shelves` lists shelved changes, and `reverted` what was
    opened, to open it again, both as the Perforce gateway has them (Shelf, OpenedFile).
    `have_differences` lists the [depot path, revision] that differ from the pin; 0 is
    none. A row with nothing else does not have `has_work`.
    """

    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="rescues"
    )
    operation = models.OneToOneField(
        Operation, on_delete=models.PROTECT, related_name="rescue"
    )
    has_archive = models.BooleanField(
        default=False, help_text="Some of it had to be archived."
    )
    directory = models.CharField(max_length=500, blank=True)
    archived_files = models.BigIntegerField(default=0)
    archived_bytes = models.BigIntegerField(default=0)
    archive_sha256 = models.CharField(max_length=64, blank=True)
    archive_seen = models.CharField(
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text="A digest of how the archived files were. If it is unchanged, "
        "another rescue uses the same archive.",
    )
    shelves = NamesField(default=list)
    reverted = NamesField(default=list)
    descriptions = EvidenceField(
        default=dict, help_text="Descriptions of the pending changes, by number."
    )
    have_differences = NamesField(default=list)
    inventory = EvidenceField(default=dict, help_text="Counts and bytes by kind.")
    has_work = models.BooleanField(
        default=False, help_text="Something is shelved or archived."
    )
    is_complete = models.BooleanField(
        default=False, help_text="It has everything that was found."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = RescueQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.CheckConstraint(
                name="rescue_with_work_has_shelves_or_archive",
                condition=Q(has_work=False, has_archive=False, shelves=[])
                | (Q(has_work=True) & ~Q(has_archive=False, shelves=[])),
            ),
            models.CheckConstraint(
                name="rescue_archive_has_directory_and_checksum",
                condition=Q(
                    has_archive=False,
                    directory="",
                    archived_files=0,
                    archive_sha256="",
                )
                | Q(
                    ~Q(directory=""),
                    has_archive=True,
                    archive_sha256__regex=r"^[0-9a-f]{64}$",
                ),
            ),
        )

    def __str__(self) -> str:
        return f"Rescue of {self.workspace}"
