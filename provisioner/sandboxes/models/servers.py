"""Where Perforce servers keep their data, on which volumes."""

from __future__ import annotations

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from provisioner.sites.models import PerforceServer, Site
from provisioner.sites.values import ontap_name_validator

inner_path_validator = RegexValidator(
    r"^(?:[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*)?\Z",
    "Write a path below the volume's root, without “..”.",
    code="invalid_path",
)


class Role(models.TextChoices):
    """What of a Perforce server lies somewhere, in the order of snapshots.

    The archives come last: files only ever gain revisions, so later archives have what
    earlier metadata names. The other way round revisions would be missing.

    Source: "Backup procedures" of the Helix Core administrator's guide.
    """

    DB = "db", "Database (P4ROOT)"
    JOURNAL = "journal", "Journal"
    LOG = "log", "Log"
    DEPOT = "depot", "Archives of depots"

    @property
    def is_file(self) -> bool:
        """Whether its path names a file, and not a directory."""
        return self in (Role.JOURNAL, Role.LOG)


NEEDED_ROLES = (Role.DB, Role.JOURNAL, Role.DEPOT)


class ServerVolumes(models.Model):
    """Where a Perforce server keeps its data: volumes of one site's SVM."""

    server = models.OneToOneField(
        PerforceServer, on_delete=models.CASCADE, related_name="volumes"
    )
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ("server__name",)

    def __str__(self) -> str:
        return f"Volumes of {self.server}"


class ServerVolume(models.Model):
    """The volume and the path in it of one part of a server.

    `path` is a directory of the database or the archives, "" for the volume itself; of
    the journal and the log it is a file.
    """

    of = models.ForeignKey(
        ServerVolumes, on_delete=models.CASCADE, related_name="places"
    )
    role = models.CharField(max_length=8, choices=Role)
    volume = models.CharField(max_length=203, validators=[ontap_name_validator])
    path = models.CharField(
        max_length=255, blank=True, validators=[inner_path_validator]
    )

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(
                fields=("of", "role"), name="server_volume_once_for_a_role"
            ),
            models.CheckConstraint(
                name="server_volume_of_a_file_names_it",
                condition=~Q(role__in=("journal", "log")) | ~Q(path=""),
            ),
        )

    def __str__(self) -> str:
        return f"{self.role} in {self.volume}"

    @property
    def line(self) -> str:
        """The place as forms show it."""
        return f"{self.role} {self.volume}{'/' if self.path else ''}{self.path}"
