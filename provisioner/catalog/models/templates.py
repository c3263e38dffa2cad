"""Templates."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.accounts.names import check_one_line
from provisioner.engine.logs.error_lines import PatternInvalid, check_patterns
from provisioner.engine.models import HasOperations, Parameters
from provisioner.lib.fields import EvidenceField
from provisioner.lib.names import (
    LONGEST_NAME,
    name_validator,
    same_tag,
    underscored,
)
from provisioner.lib.rows import few
from provisioner.routing.kinds import Purpose
from provisioner.routing.models import Routed
from provisioner.sites.models import MeasuredVolume, Site

LEAST_VOLUME_BYTES, MOST_VOLUME_BYTES = 20 * 2**20, 300 * 2**40
"""What a FlexVol can have. Older releases and platforms end at 100 TiB.

Source: "Volume limits", https://docs.netapp.com/us-en/ontap/volumes/.
"""


class LineEnd(models.TextChoices):
    """LineEnd of client specs; workspaces have that of their template (p4 client)."""

    LOCAL = "local"
    UNIX = "unix"
    MAC = "mac"
    WIN = "win"
    SHARE = "share"


class TemplateOperation(models.TextChoices):
    BUILD = "template_build", "Build template"
    DELETE = "template_delete", "Delete template"


class VolumeOperation(models.TextChoices):
    """Operations on a template's volume that leave the template's state as it is."""

    CHANGE = "template_volume", "Change volume"


@dataclass(frozen=True, kw_only=True)
class BuildParameters(Parameters):
    """What to build.

    At a change, None for the newest; from a `clean` volume; or only some depot `paths`.
    `aggregate` is where a first build was to put the volume, "" if that is told.
    """

    change: int | None = None
    clean: bool = False
    paths: Sequence[str] = ()
    aggregate: str = ""


class ExistingTemplates(models.Manager["Template"]):
    """Templates except deleted ones, which remain as history."""

    def get_queryset(self) -> models.QuerySet[Template]:
        return super().get_queryset().exclude(state=Template.State.DELETED)


def check_error_patterns(text: str) -> None:
    """Refuse lines that are no valid patterns. For fields of models and forms.

    Raises: ValidationError.
    """
    try:
        check_patterns(_lines(text))
    except PatternInvalid as error:
        raise ValidationError(str(error)) from error


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


@few
class Template(Routed, MeasuredVolume, HasOperations):
    """A synced, built tree that workspaces are cloned from.

    Either `view` (view lines as in a client spec, with any client name on the right) or
    `stream`. An archived template is neither offered nor built; one that is deleted, or
    being deleted, is archived as well.
    """

    class State(models.TextChoices):
        NEW = "new", "Never built"
        BUILDING = "building", "Building"
        READY = "ready", "Ready"
        FAILED = "failed", "Last build failed"
        DELETING = "deleting", "Being deleted"
        DELETED = "deleted", "Deleted"

    class WantedQuality(models.TextChoices):
        """The quality that a snapshot needs to become the default."""

        BUILT = "built", "Built, no failed tests"
        TESTED = "tested", "Tested"

    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="templates")
    name = models.CharField(max_length=LONGEST_NAME, validators=[name_validator])
    title = models.CharField(
        max_length=100,
        blank=True,
        validators=[check_one_line],
        help_text="The title on pages. Empty: its name, which never changes.",
    )
    description = models.CharField(
        max_length=500, blank=True, validators=[check_one_line]
    )
    view = models.TextField(
        blank=True,
        help_text="View lines as in a client spec, such as "
        "//depot/main/... //template/...; a minus before a line leaves files out.",
    )
    stream = models.CharField(max_length=255, blank=True)
    line_end = models.CharField(
        max_length=8, choices=LineEnd.choices, default=LineEnd.LOCAL
    )
    client_options = models.CharField(
        max_length=120,
        default="noallwrite noclobber nocompress unlocked nomodtime normdir",
    )
    submit_options = models.CharField(max_length=40, default="submitunchanged")
    build_command = models.TextField(
        blank=True, help_text="Run by /bin/sh in the template's root. Empty: no build."
    )
    build_environment = EvidenceField(
        default=dict,
        blank=True,
        help_text="For builds and tests. Only administrators see the values.",
    )
    bisection_environment = EvidenceField(
        default=dict,
        blank=True,
        help_text="For commands of bisections, which people choose. Everybody can "
        "read it.",
    )
    commands_have_network = models.BooleanField(
        default=True,
        db_default=True,
        help_text="Whether builds, tests and bisections reach other hosts.",
    )
    build_timeout_seconds = models.PositiveIntegerField(
        default=4 * 3600, validators=[MinValueValidator(1)]
    )
    test_command = models.TextField(
        blank=True,
        help_text="Run by /bin/sh in the template's root after the build. Empty: no "
        "test.",
    )
    test_timeout_seconds = models.PositiveIntegerField(
        default=3600, validators=[MinValueValidator(1)]
    )
    wanted_quality = models.CharField(
        max_length=6,
        choices=WantedQuality,
        default=WantedQuality.BUILT,
        help_text="New workspaces get the newest snapshot with this quality.",
    )
    ignore_patterns = models.TextField(
        blank=True, help_text="Build outputs, as in P4IGNORE, one per line."
    )
    error_patterns = models.TextField(
        blank=True,
        default="",
        db_default="",
        validators=[check_error_patterns],
        help_text="Regular expressions (RE2), one a line, of any case: the first line "
        "of a log that matches one is its first error. The usual compilers and build "
        "tools need none.",
    )
    volume_size_bytes = models.BigIntegerField(
        default=100 * 2**30,
        validators=[
            MinValueValidator(
                LEAST_VOLUME_BYTES, "ONTAP has no volumes smaller than 20 MiB."
            ),
            MaxValueValidator(
                MOST_VOLUME_BYTES, "ONTAP has no FlexVol volumes larger than 300 TiB."
            ),
        ],
    )
    snapshots_to_keep = models.PositiveSmallIntegerField(
        default=5, validators=[MinValueValidator(1)]
    )
    state = models.CharField(max_length=8, choices=State, default=State.NEW)
    status_code = models.CharField(max_length=60, blank=True)
    status_message = models.TextField(blank=True)
    tag = models.UUIDField(default=uuid.uuid4, editable=False, unique=True)
    client_number = models.PositiveSmallIntegerField(
        default=1,
        editable=False,
        help_text="Which of its clients this is. Each Perforce server that it moves to "
        "gets another one, since clients are bound to edges.",
    )
    volume_uuid = models.CharField(max_length=36, blank=True)
    snapshots_in_volume = models.PositiveIntegerField(
        default=0, help_text="All snapshots of its volume, by ONTAP."
    )
    clones_of_others = models.PositiveIntegerField(
        default=0, help_text="Clones of its volume without Cloneyard's tag, by ONTAP."
    )
    owner = models.ForeignKey(
        User,
        on_delete=models.PROTECT,
        related_name="+",
        help_text="Who manages it, and decides which of its snapshots people get.",
    )
    last_build = models.ForeignKey(
        "engine.Operation",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        editable=False,
        related_name="+",
        help_text="The build of its whole view that was requested last.",
    )
    clean_build_at = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When a clean build was requested last.",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    archived_at = models.DateTimeField(null=True, blank=True)
    archived_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    archive_reason = models.CharField(
        max_length=500, blank=True, validators=[check_one_line]
    )

    objects = ExistingTemplates()
    with_deleted = models.Manager["Template"]()

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("site", "name"),
                condition=~Q(state="deleted"),
                name="template_name_unique_in_site",
            ),
            models.CheckConstraint(
                name="template_archived_by_somebody",
                condition=Q(
                    archived_at__isnull=True,
                    archived_by__isnull=True,
                    archive_reason="",
                )
                | Q(archived_at__isnull=False, archived_by__isnull=False),
            ),
            models.CheckConstraint(
                name="template_deleted_is_archived",
                condition=~Q(state__in=("deleting", "deleted"))
                | Q(archived_at__isnull=False),
            ),
            models.CheckConstraint(
                name="template_has_view_or_stream",
                condition=(Q(view="") & ~Q(stream="")) | (~Q(view="") & Q(stream="")),
            ),
            models.CheckConstraint(
                name="template_built_clean_was_built",
                condition=Q(clean_build_at__isnull=True) | Q(last_build__isnull=False),
            ),
            models.CheckConstraint(
                name="template_tested_has_test",
                condition=~Q(wanted_quality="tested") | ~Q(test_command=""),
            ),
            models.CheckConstraint(
                name="template_failed_has_reason",
                condition=~Q(state="failed") | ~Q(status_code=""),
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def used_for(self) -> str:
        return Purpose.TEMPLATE

    @property
    def heading(self) -> str:
        """Its title, or its name without one."""
        return self.title or self.name

    @property
    def is_archived(self) -> bool:
        return self.archived_at is not None

    @property
    def is_moving(self) -> bool:
        return self.state in MOVING_TEMPLATES

    @property
    def clone_size_bytes(self) -> int:
        """The maximum size of clones. A new size applies from the next build on."""
        return self.actual_size_bytes or self.volume_size_bytes

    @property
    def volume_name(self) -> str:
        return f"cy_{underscored(self.name)}_t{self.tag.hex[:6]}"

    @property
    def client_name(self) -> str:
        number = "" if self.client_number == 1 else f"-{self.client_number}"
        return f"cy-{self.name}-t{self.tag.hex[:6]}{number}"

    @property
    def junction_path(self) -> str:
        return f"/t-{self.name}"

    @property
    def path(self) -> Path:
        return self.site.path_of(self.junction_path)

    @property
    def volume_comment(self) -> str:
        """The tag that marks the volume as this template's, visible in ONTAP."""
        return f"cloneyard:v1:template={self.tag}"

    def is_tagged(self, comment: str) -> bool:
        """Return whether a volume's comment has its tag."""
        return same_tag(comment, self.volume_comment)

    @property
    def view_lines(self) -> tuple[str, ...]:
        return _lines(self.view)

    @property
    def ignore_lines(self) -> tuple[str, ...]:
        lines = _lines(self.ignore_patterns)
        return tuple(line for line in lines if not line.startswith("#"))

    @property
    def error_pattern_lines(self) -> tuple[str, ...]:
        return _lines(self.error_patterns)


MOVING_TEMPLATES = (Template.State.BUILDING, Template.State.DELETING)
"""States in which an operation is under way."""


class TemplateCheck(models.Model):
    """The latest checks of a template's definition.

    `remarks` are {"kind", "sentence"}. If the view could not be counted, none of the
    numbers is known, and `error` says why.
    """

    template = models.OneToOneField(
        Template, on_delete=models.CASCADE, related_name="check_result"
    )
    remarks = EvidenceField(default=list)
    files = models.BigIntegerField(null=True, blank=True)
    size_bytes = models.BigIntegerField(null=True, blank=True)
    depot_files = models.BigIntegerField(null=True, blank=True)
    error = models.TextField(blank=True)
    checked_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.template}: {len(self.remarks)} remarks"


class PinnedTemplate(models.Model):
    """A template on top of a person's home page."""

    person = models.ForeignKey(
        User, on_delete=models.CASCADE, related_name="pinned_templates"
    )
    template = models.ForeignKey(
        Template, on_delete=models.CASCADE, related_name="pinned_by"
    )
    pinned_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("person", "template"), name="template_pinned_once_by_a_person"
            ),
        )

    def __str__(self) -> str:
        return f"{self.template} for {self.person}"
