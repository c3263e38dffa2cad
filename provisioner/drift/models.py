"""Where database, ONTAP and Perforce disagree."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.copies.models import WorkspaceCopy
from provisioner.lib.fields import EvidenceField
from provisioner.mirrors.models import Mirror
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace


class FarSide(models.TextChoices):
    """The remote system that a drift check reads."""

    ONTAP = "ontap", "ONTAP"
    PERFORCE = "perforce", "Perforce"


class DriftCheck(models.Model):
    """The last drift check of one remote system of a site, and whether it succeeded.

    `checked_at` is when it last saw all of it; `status_message` says why the newest
    attempt failed, "" if it did not. `asked_at` is when somebody last requested one.
    """

    site = models.ForeignKey(
        Site, on_delete=models.CASCADE, related_name="drift_checks"
    )
    system = models.CharField(max_length=10, choices=FarSide)
    checked_at = models.DateTimeField(null=True, blank=True)
    seconds = models.FloatField(default=0)
    objects_seen = models.PositiveIntegerField(default=0)
    asked_at = models.DateTimeField(null=True, blank=True)
    status_message = models.TextField(blank=True)

    class Meta:
        ordering = ("site__name", "system")
        constraints = (
            models.UniqueConstraint(
                fields=("site", "system"), name="audit_run_once_per_side"
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_system_display()} of {self.site}"


class Finding(models.Model):
    """One difference that a drift check found, until it is resolved.

    `subject` is the name of the volume, client, snapshot or job;
    `external_id` its uuid there, and `volume_uuid` that of a snapshot's volume. A
    volume without a row has the tag of a workspace, template, mirror or copy:
    `tag_kind`. `details` is evidence for people.
    """

    class Kind(models.TextChoices):
        VOLUME_WITHOUT_ROW = "volume_without_row", "Orphaned volume"
        ROW_WITHOUT_VOLUME = "row_without_volume", "Volume is gone"
        VOLUME_TAG_COPIED = "volume_tag_copied", "Volume with a copied tag"
        VOLUME_UNTAGGED = "volume_untagged", "Volume without its tag"
        VOLUME_OFFLINE = "volume_offline", "Volume that is not online"
        VOLUME_SIZE_DIFFERS = "volume_size_differs", "Volume of another size"
        VOLUME_SETTINGS_DIFFER = "volume_settings_differ", "Volume with other settings"
        CLIENT_WITHOUT_ROW = "client_without_row", "Orphaned client"
        ROW_WITHOUT_CLIENT = "row_without_client", "Client is gone"
        CLIENT_TAG_COPIED = "client_tag_copied", "Client with a copied description"
        JUNCTION_DIFFERS = "junction_differs", "Mounted at another path"
        CLIENT_DIFFERS = "client_differs", "Client was changed"
        CLIENT_VIEW_DIFFERS = "client_view_differs", "View of a client was changed"
        SNAPSHOT_WITHOUT_ROW = "snapshot_without_row", "Snapshot without a row"
        ROW_WITHOUT_SNAPSHOT = "row_without_snapshot", "Snapshot is gone"
        ROW_WITHOUT_RELATIONSHIP = (
            "row_without_relationship",
            "SnapMirror relationship is gone",
        )
        JOB_UNATTENDED = "job_unattended", "Abandoned ONTAP job"

        @property
        def system(self) -> FarSide:
            """The remote system that it was found on."""
            of_perforce = (
                Finding.Kind.CLIENT_WITHOUT_ROW,
                Finding.Kind.ROW_WITHOUT_CLIENT,
                Finding.Kind.CLIENT_TAG_COPIED,
                Finding.Kind.CLIENT_DIFFERS,
                Finding.Kind.CLIENT_VIEW_DIFFERS,
            )
            return FarSide.PERFORCE if self in of_perforce else FarSide.ONTAP

    class TagKind(models.TextChoices):
        TEMPLATE = "template"
        WORKSPACE = "workspace"
        MIRROR = "mirror"
        COPY = "copy"

    class Action(models.TextChoices):
        NONE = "none", "Look into it"
        ADOPT = "adopt", "Adopt"
        FINISH = "finish", "Finish"
        REMOVE = "remove", "Remove"

    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="findings")
    kind = models.CharField(max_length=30, choices=Kind)
    subject = models.CharField(max_length=500)
    external_id = models.CharField(max_length=64, blank=True)
    volume_uuid = models.CharField(max_length=36, blank=True)
    snapshot = models.CharField(max_length=255, blank=True)
    tag_kind = models.CharField(max_length=9, choices=TagKind, blank=True)
    tag = models.UUIDField(null=True, blank=True)
    sentence = models.TextField()
    details = EvidenceField(default=dict)
    action = models.CharField(max_length=10, choices=Action, default=Action.NONE)
    is_automatic = models.BooleanField(
        default=False,
        help_text="The repair cannot lose work, so it needs no confirmation.",
    )
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    mirror = models.ForeignKey(
        Mirror, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    copy = models.ForeignKey(
        WorkspaceCopy, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    times_seen = models.PositiveIntegerField(default=1)
    asked_at = models.DateTimeField(
        null=True, blank=True, help_text="When its repair was requested."
    )
    asked_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    status_message = models.TextField(
        blank=True, help_text="Why the last attempt at its action failed."
    )
    resolved_at = models.DateTimeField(null=True, blank=True)
    resolution = models.TextField(blank=True)
    resolved_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )

    class Meta:
        ordering = ("-last_seen_at", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("site", "kind", "subject"),
                condition=Q(resolved_at__isnull=True),
                name="finding_open_once",
            ),
            models.CheckConstraint(
                name="finding_of_unknown_volume_has_tag",
                condition=Q(
                    tag_kind__in=("template", "workspace", "mirror", "copy"),
                    tag__isnull=False,
                )
                | (
                    Q(tag_kind="", tag__isnull=True)
                    & (
                        ~Q(kind="volume_without_row")
                        | Q(workspace__isnull=False)
                        | Q(template__isnull=False)
                        | Q(mirror__isnull=False)
                        | Q(copy__isnull=False)
                    )
                ),
            ),
            models.CheckConstraint(
                name="finding_of_snapshot_says_which",
                condition=(
                    Q(kind__in=("snapshot_without_row", "row_without_snapshot"))
                    & ~Q(volume_uuid="")
                    & ~Q(snapshot="")
                )
                | (
                    ~Q(kind__in=("snapshot_without_row", "row_without_snapshot"))
                    & Q(volume_uuid="", snapshot="")
                ),
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_kind_display()}: {self.subject}"

    @property
    def row(self) -> Workspace | Template | Mirror | WorkspaceCopy | None:
        """The row that it is about."""
        return self.workspace or self.template or self.mirror or self.copy

    @property
    def is_of_mirror(self) -> bool:
        is_tagged = self.tag_kind == self.TagKind.MIRROR
        return self.mirror_id is not None or is_tagged

    @property
    def is_of_copy(self) -> bool:
        is_tagged = self.tag_kind == self.TagKind.COPY
        return self.copy_id is not None or is_tagged

    @property
    def is_repairable(self) -> bool:
        return self.action != self.Action.NONE

    @property
    def is_offered(self) -> bool:
        """Whether its repair can be requested now."""
        is_open = self.resolved_at is None and self.asked_at is None
        return is_open and self.is_repairable

    @property
    def action_title(self) -> str:
        """The label of its repair if only part of the object is meant."""
        return _ACTION_TITLES.get(self.kind, self.get_action_display())


_ACTION_TITLES: dict[str, str] = {
    Finding.Kind.VOLUME_TAG_COPIED: "Remove its tag",
    Finding.Kind.VOLUME_UNTAGGED: "Restore its tag",
    Finding.Kind.VOLUME_OFFLINE: "Bring it online",
    Finding.Kind.VOLUME_SIZE_DIFFERS: "Resize it",
    Finding.Kind.VOLUME_SETTINGS_DIFFER: "Restore its settings",
    Finding.Kind.ROW_WITHOUT_RELATIONSHIP: "Create it again",
    Finding.Kind.CLIENT_TAG_COPIED: "Remove the tag from its description",
    Finding.Kind.CLIENT_VIEW_DIFFERS: "Restore its View",
}
