"""Published snapshots: their pins, and which of them people get."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection, Iterable
from functools import reduce
from operator import or_

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from provisioner.accounts.models import User
from provisioner.accounts.names import check_one_line
from provisioner.catalog.models.templates import Template
from provisioner.lib.fields import EvidenceField, NamesField
from provisioner.lib.prepared import Prepared, among


class Quality(models.TextChoices):
    """The quality of a snapshot."""

    BUILT = "built", "Built"
    TESTED = "tested", "Tested"
    FAILED = "failed", "Tests failed"


AT_LEAST: dict[str, tuple[Quality, ...]] = {
    Quality.TESTED: (Quality.TESTED,),
    Quality.BUILT: (Quality.BUILT, Quality.TESTED),
}
"""What is as good as what a template, or a request, asks for."""


def snapshot_is_there(*, by: str = "") -> Q:
    """Return the condition for snapshots that are not deleted, as `Snapshot.is_there`.

    `by` leads to the snapshot.
    """
    return Q(**{f"{by}deleted_at__isnull": True})


IS_AVAILABLE = snapshot_is_there() & Q(withdrawn_at__isnull=True)
"""The condition for snapshots that can be cloned."""


class SnapshotQuerySet(models.QuerySet["Snapshot"]):
    """Queries for available and default snapshots."""

    def there(self) -> SnapshotQuerySet:
        """Keep those not deleted, including withdrawn ones, which may have clones."""
        return self.filter(snapshot_is_there())

    def available(self) -> SnapshotQuerySet:
        """Keep those that can be cloned, newest first."""
        return self.filter(IS_AVAILABLE)

    def complete(self) -> SnapshotQuerySet:
        """Keep snapshots whose whole view is at one change."""
        return self.filter(is_complete=True)

    def mark_deleted(self, *, at: dt.datetime) -> int:
        """Mark them as deleted, so that they are not cloned any more, held or not."""
        return self.there().update(
            deleted_at=at, held_at=None, held_by=None, hold_reason=""
        )

    def default_first(self, *, at_least: str = "") -> SnapshotQuerySet:
        """Keep default candidates, in order: the first of a template is its default.

        A held one comes first, whatever its quality. With a quality, all have at least
        that.
        """
        fits = Q(quality__in=AT_LEAST[at_least]) if at_least else _CAN_BE_DEFAULT
        return self.available().complete().filter(fits).order_by(*_HELD_THEN_NEWEST)

    def reference_first(self) -> SnapshotQuerySet:
        """Keep available complete snapshots, the best reference of each template first.

        That is its default, told by `is_default`, else its newest.
        """
        told = self.available().complete().telling_default()
        return told.order_by("template_id", "-is_default", *_HELD_THEN_NEWEST)

    def telling_default(self) -> SnapshotQuerySet:
        """Tell by `is_default` which are good enough for the default, or held."""
        return self.annotate(is_default=_CAN_BE_DEFAULT)


_CAN_BE_DEFAULT = reduce(
    or_,
    (
        Q(template__wanted_quality=wanted, quality__in=enough)
        for wanted, enough in AT_LEAST.items()
    ),
    Q(held_at__isnull=False),
)
_HELD_THEN_NEWEST = (F("held_at").asc(nulls_last=True), "-created_at", "-id")


def reference_among(snapshots: Iterable[Snapshot]) -> Snapshot | None:
    """Return the first of `reference_first` among available complete snapshots.

    They are those of one template, newest first, by `telling_default`.
    """
    return max(
        snapshots,
        key=lambda each: (vars(each)["is_default"], each.is_held),
        default=None,
    )


class Snapshot(models.Model):
    """A published snapshot and its pin: what exactly it contains.

    Workspaces flush to `change` and compare with `have_count` and `have_digest`, never
    with the template's client, which may have moved on. `parts` are {"path", "change"}
    of depot paths at other changes, the latest refreshed last; a snapshot that has any
    is not `is_complete`, and never the default. `sample` are the path, bytes and digest
    of a few files, by which copies at other sites are compared; adopted ones have none.
    `is_clean`: its build began with only versioned files. `operation` made it.

    While it is held, new workspaces get it whatever is published later. Once it is
    withdrawn nobody gets it; it is deleted when no workspace needs it.
    """

    template = models.ForeignKey(
        Template, on_delete=models.PROTECT, related_name="snapshots"
    )
    name = models.CharField(max_length=255)
    ontap_uuid = models.CharField(max_length=36)
    change = models.BigIntegerField()
    client_spec = models.TextField(help_text="The template client's form.")
    have_count = models.BigIntegerField()
    have_digest = models.CharField(max_length=64)
    quality = models.CharField(max_length=6, choices=Quality, default=Quality.BUILT)
    is_clean = models.BooleanField(default=False)
    is_complete = models.BooleanField(
        default=True, help_text="Its whole view is at one change."
    )
    parts = NamesField(default=list, blank=True)
    sample = NamesField(default=list, blank=True)
    remarks = EvidenceField(default=list, help_text="Remarks for people.")
    sync_seconds = models.FloatField(default=0)
    build_seconds = models.FloatField(default=0)
    test_seconds = models.FloatField(default=0)
    grew_bytes = models.BigIntegerField(
        null=True,
        blank=True,
        help_text="What its build added to the volume, as ONTAP reported it.",
    )
    clones_of_others = models.PositiveIntegerField(
        default=0, help_text="Its clones without Cloneyard's tag, by ONTAP."
    )
    operation = models.ForeignKey(
        "engine.Operation",
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="snapshots",
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    deleted_at = models.DateTimeField(null=True, blank=True)
    label = models.CharField(max_length=60, blank=True, validators=[check_one_line])
    notes = models.TextField(max_length=4000, blank=True)
    held_at = models.DateTimeField(null=True, blank=True)
    held_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    hold_reason = models.CharField(
        max_length=500, blank=True, validators=[check_one_line]
    )
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    withdraw_reason = models.CharField(
        max_length=500, blank=True, validators=[check_one_line]
    )

    objects = SnapshotQuerySet.as_manager()

    class Meta:
        ordering = ("-created_at", "-id")
        constraints = (
            models.UniqueConstraint(
                fields=("template", "name"), name="snapshot_name_unique_in_template"
            ),
            models.CheckConstraint(
                name="snapshot_is_pinned",
                condition=Q(change__gt=0)
                & Q(have_count__gte=0)
                & Q(have_digest__regex=r"^[0-9a-f]{64}$")
                & ~Q(client_spec="")
                & ~Q(ontap_uuid=""),
            ),
            models.UniqueConstraint(
                fields=("template",),
                condition=Q(held_at__isnull=False),
                name="snapshot_held_once_in_template",
            ),
            models.CheckConstraint(
                name="snapshot_held_by_somebody_for_a_reason",
                condition=Q(held_at__isnull=True, held_by__isnull=True, hold_reason="")
                | (
                    Q(held_at__isnull=False, held_by__isnull=False) & ~Q(hold_reason="")
                ),
            ),
            models.CheckConstraint(
                name="snapshot_held_can_be_had",
                condition=Q(held_at__isnull=True)
                | (IS_AVAILABLE & Q(is_complete=True)),
            ),
            models.CheckConstraint(
                name="snapshot_complete_has_no_parts",
                condition=Q(is_complete=False) | Q(parts=[]),
            ),
            models.CheckConstraint(
                name="snapshot_withdrawn_by_somebody_for_a_reason",
                condition=Q(
                    withdrawn_at__isnull=True,
                    withdrawn_by__isnull=True,
                    withdraw_reason="",
                )
                | (
                    Q(withdrawn_at__isnull=False, withdrawn_by__isnull=False)
                    & ~Q(withdraw_reason="")
                ),
            ),
        )
        indexes = (
            models.Index(
                fields=("deleted_at",),
                condition=Q(deleted_at__isnull=False),
                name="snapshot_deleted",
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def part_change(self) -> int | None:
        """The newest change of its parts; None if the whole view is at one change."""
        return int(self.parts[-1]["change"]) if self.parts else None

    @property
    def mark(self) -> str:
        """Return its quality in a word or two."""
        mark = str(Quality(self.quality).label)
        return mark if self.is_complete else f"{mark}, refreshed in part"

    @property
    def is_there(self) -> bool:
        return self.deleted_at is None

    @property
    def is_held(self) -> bool:
        return self.held_at is not None

    @property
    def is_withdrawn(self) -> bool:
        return self.withdrawn_at is not None


_REFERENCES = Prepared(
    lambda templates: (
        Snapshot.objects.reference_first()
        .filter(among("template", templates))
        .distinct("template_id")
        .only(
            *("template_id", "name", "clones_of_others"),
            *("change", "have_count", "quality", "created_at"),
        )
    ),
)


def references_of(templates: Collection[Template]) -> dict[int, Snapshot]:
    """Return the best reference of each template, by the template's id.

    The templates are those of the snapshots, too. One query, for what names and
    describes a snapshot.
    """
    by_id = {template.pk: template for template in templates}
    references = {
        snapshot.template_id: snapshot for snapshot in _REFERENCES.rows([*by_id])
    }
    for template_id, snapshot in references.items():
        snapshot.template = by_id[template_id]
    return references
