"""What size a template's volume needs, from the figures that are known."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from django.db.models import Subquery

from provisioner.catalog.models import Snapshot, Template

FREE_PERCENT = 20
BUILDS_AVERAGED = 10
_MIB, _GIB = 2**20, 2**30


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a part of the content takes; None: not known. `note` says of what it is."""

    label: str
    size_bytes: int | None
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class SizeAdvice:
    """The parts of what a volume is to hold, and the size that fits them."""

    parts: tuple[Part, ...]

    @property
    def sum_bytes(self) -> int:
        return sum(part.size_bytes or 0 for part in self.parts)

    @property
    def is_complete(self) -> bool:
        """Whether every part is known. The sum is the least otherwise."""
        return all(part.size_bytes is not None for part in self.parts)

    @property
    def proposed_bytes(self) -> int | None:
        """A round size, `FREE_PERCENT` of it free beside the sum; None for nothing."""
        if not self.sum_bytes:
            return None
        needed = self.sum_bytes * 100 // (100 - FREE_PERCENT)
        step = _GIB if needed >= _GIB else _MIB
        return -(-needed // step) * step


def size_advice(template: Template) -> SizeAdvice:
    """Return what a template's volume is to hold, by what was measured of it."""
    snapshots = template.snapshots.there().values_list("size__size_bytes", flat=True)
    sizes = list(snapshots)
    measured = [size for size in sizes if size is not None]
    held = sum(measured) if measured or not sizes else None
    return SizeAdvice(
        parts=(
            *_files(template, in_snapshots=held or 0),
            Part(
                label="Kept snapshots",
                size_bytes=held,
                note=f"{len(measured):,} of {len(sizes):,} measured",
            ),
            _next_builds(template, snapshots=len(sizes)),
        )
    )


def _files(template: Template, *, in_snapshots: int) -> tuple[Part, ...]:
    """Return the view and what builds add to it.

    ONTAP's `space.used` counts what snapshots hold beyond their reserve as well.
    """
    check, used = getattr(template, "check_result", None), template.used_bytes
    view = check.size_bytes if check is not None else None
    files = None if used is None else max(used - in_snapshots, 0)
    if view is None and files is not None:
        return (Part(label="View and build output", size_bytes=files),)
    output = None if files is None else max(files - (view or 0), 0)
    return (
        Part(label="View", size_bytes=view),
        Part(label="Build output", size_bytes=output),
    )


def _next_builds(template: Template, *, snapshots: int) -> Part:
    """Return what the builds add until as many snapshots are kept as are wanted.

    The first one says nothing about them: it fetched the whole view.
    """
    ever = Snapshot.objects.filter(template=template)
    first = ever.order_by("pk").values("pk")[:1]
    builds = ever.filter(is_clean=False, pk__gt=Subquery(first))
    grew = builds.exclude(grew_bytes=None).order_by("-pk").only("grew_bytes")
    growths = [each.grew_bytes or 0 for each in grew[:BUILDS_AVERAGED]]
    ahead = max(template.snapshots_to_keep - snapshots, 0) + 1
    each = round(fmean(growths)) if growths else None
    return Part(
        label="Next builds",
        size_bytes=None if each is None else each * ahead,
        note=f"{ahead:,} of them, by the mean of {len(growths):,}",
    )
