"""What a move of a template's volume means, before it is requested.

Source: "Considerations and recommendations when moving volumes",
https://docs.netapp.com/us-en/ontap/volumes/recommendations-moving-concept.html. Clones
of a moved volume stay in the old aggregate; a hidden volume there keeps what they share
until the last of them is split or deleted. A clone that is moved itself shares nothing
any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet, Sum

from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.lib.refusals import ActionRefused
from provisioner.lib.sizes import size_text
from provisioner.moves.models import Move, TemplatePlace
from provisioner.moves.obstacles import place_of, require_place_for, require_quiet
from provisioner.moves.refusals import SameAggregate
from provisioner.sites.models import AggregateSpace
from provisioner.workspaces.models import Workspace

SLOW_TIERS = ("all", "auto")


@dataclass(frozen=True, kw_only=True)
class AggregateChoice:
    """An aggregate of the site, and why the volume cannot go there, if so."""

    space: AggregateSpace
    refusal: ActionRefused | None

    @property
    def is_current(self) -> bool:
        return isinstance(self.refusal, SameAggregate)

    @property
    def is_usable(self) -> bool:
        return self.refusal is None

    @property
    def verdict(self) -> str:
        """A phrase on whether the volume may go there."""
        if self.is_current:
            return "It is here"
        return "It fits" if self.is_usable else "Too full"


@dataclass(frozen=True, kw_only=True)
class MovePreview:
    """A template's move: what it would mean now, and what became of the last one.

    `clones` are workspaces that share blocks with its volume. `shared_bytes` is what
    the old aggregate keeps for them, at most.
    `refusal` says why no move can be requested now.
    """

    template: Template
    place: TemplatePlace | None
    choices: list[AggregateChoice]
    clones: int
    shared_bytes: int
    last: Move | None
    refusal: ActionRefused | None

    @property
    def operation(self) -> Operation | None:
        return self.last.operation if self.last is not None else None

    @property
    def is_running(self) -> bool:
        operation = self.operation
        return operation is not None and operation.state == Operation.State.RUNNING

    @property
    def outcome(self) -> str:
        """Why the last move ended before its end, "" if it did not.

        ONTAP may have been done by the time somebody paused or stopped it.
        """
        said = self.operation.status_message if self.operation is not None else ""
        if not said or self.last is None or self.place is None:
            return said
        if self.place.aggregate != self.last.destination:
            return said
        return f"{said} The volume had reached {self.last.destination} by then."

    @property
    def paused_at(self) -> datetime | None:
        return self.last.paused_at if self.last is not None else None

    @property
    def can_begin(self) -> bool:
        is_free = self.refusal is None and self.paused_at is None
        return is_free and any(each.is_usable for each in self.choices)

    @property
    def needs(self) -> str:
        """A sentence on what the volume takes at its destination."""
        known = self.place.footprint_bytes if self.place is not None else None
        if known is None:
            return "Not measured yet. ONTAP is asked when the move begins."
        return f"{size_text(known)} there, with its snapshots."

    @property
    def loses(self) -> str:
        """A sentence on what its clones share afterwards."""
        if not self.clones:
            return "Nothing: no workspace shares blocks with it."
        are = "workspace shares" if self.clones == 1 else "workspaces share"
        much = "blocks"
        if self.shared_bytes:
            much = f"up to {size_text(self.shared_bytes)}"
        stay = "They stay where they are, with these blocks"
        last = "the last of these is"
        if self.clones == 1:
            stay, last = "It stays where it is, with these blocks", "it is"
        return (
            f"{self.clones:,} {are} {much} with it. {stay}: the old aggregate frees "
            f"them once {last} retired and purged, or split. New clones share with the "
            "moved volume alone."
        )

    @property
    def tiering(self) -> str:
        """A sentence on the volume's tiering policy."""
        policy = self.place.tiering_policy if self.place is not None else ""
        if not policy:
            return "ONTAP does not report one."
        if policy in SLOW_TIERS:
            return (
                f"{policy}: data that is rarely read goes to the object store. First "
                "reads of a new workspace may be slow."
            )
        return f"{policy}, as before."


def move_preview(template: Template) -> MovePreview:
    """Return what a move of a template's volume would mean now."""
    refusal: ActionRefused | None = None
    place = None
    try:
        place = place_of(template)
        require_quiet(template)
    except ActionRefused as error:
        refusal = error
    sharing = Workspace.objects.clones().filter(
        template=template, site=template.site_id
    )
    if place is not None:  # those that an earlier move left behind share no more
        sharing = sharing.filter(aggregate__in=("", place.aggregate))
    moves = template.moves.select_related("operation__requested_by")
    return MovePreview(
        template=template,
        place=place,
        choices=_choices(place) if place is not None else [],
        clones=sharing.count(),
        shared_bytes=_shared_bytes(sharing, place),
        last=moves.order_by("-pk").first(),
        refusal=refusal,
    )


def _choices(place: TemplatePlace) -> list[AggregateChoice]:
    spaces = AggregateSpace.objects.filter(site=place.template.site_id)
    found = []
    for space in spaces.select_related("site").order_by("name"):
        refusal: ActionRefused | None = None
        try:
            require_place_for(place, aggregate=space.name)
        except ActionRefused as error:
            refusal = error
        found.append(AggregateChoice(space=space, refusal=refusal))
    return found


def _shared_bytes(sharing: QuerySet[Workspace], place: TemplatePlace | None) -> int:
    """Return what clones share with the volume. They share the same blocks."""
    each = sharing.aggregate(sum=Sum("split_bytes"))["sum"] or 0
    footprint = place.footprint_bytes if place is not None else None
    return each if footprint is None else min(each, footprint)
