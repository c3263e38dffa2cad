"""The lists of runs, and of what storage saves by day."""

from __future__ import annotations

from provisioner.efficiency.forms import DedupeRunFilterForm, ReductionFilterForm
from provisioner.efficiency.models import DedupeRun, ReductionDay
from provisioner.efficiency.queries import days_matching, runs_matching
from provisioner.web.lists.listing import Chip, Column, Listing


def _size(name: str, label: str) -> Column:
    return Column(name, label, name, name, has_gaps=True, is_number=True)


RUNS = Listing[DedupeRun](
    name="deduplication-runs",
    one="run",
    many="runs",
    columns=(
        Column("volume", "Volume", "volume.name", "volume__name"),
        Column("site", "", "volume.site.name", goes_with="volume"),
        Column("state", "State", lambda row: row.get_state_display(), "state"),
        Column("message", "", "message", goes_with="state"),
        Column(
            *("window_at", "Window", "window_at", "window_at"),
            begins_descending=True,
            is_unbroken=True,
        ),
        Column("ended_at", "Ended", "ended_at", is_unbroken=True),
        _size("saved_before_bytes", "Saved before"),
        _size("saved_after_bytes", "Saved after"),
        _size("took_before_bytes", "Took before"),
        _size("took_after_bytes", "Took after"),
    ),
    cells="efficiency/_run_cells.html",
    matching=runs_matching,
    usual="-window_at",
    form=DedupeRunFilterForm,
    nothing="Nothing was deduplicated yet.",
)

REDUCTION = Listing[ReductionDay](
    name="data-reduction",
    one="day",
    many="days",
    columns=(
        Column("day", "Day (UTC)", "day", "day", begins_descending=True),
        Column("kind", "Kind", lambda row: row.get_kind_display(), "kind"),
        Column("name", "Name", "subject"),
        Column("site", "", "site.name", goes_with="name"),
        _size("logical_bytes", "Logical"),
        _size("physical_bytes", "Physical"),
        Column("reduction", "Reduction", "reduction", is_number=True),
        Column("provisioned_bytes", "", "provisioned_bytes", goes_with="provisioned"),
        Column("provisioned", "Provisioned", "overcommitment", is_number=True),
        Column("full_percent", "Full", "full_percent", is_number=True),
        Column("saved", "Saved by", None),
        Column("by_snapshots_bytes", "", "by_snapshots_bytes", goes_with="saved"),
        Column("by_clones_bytes", "", "by_clones_bytes", goes_with="saved"),
        Column(
            "by_deduplication_bytes", "", "by_deduplication_bytes", goes_with="saved"
        ),
        Column("by_compression_bytes", "", "by_compression_bytes", goes_with="saved"),
    ),
    cells="efficiency/_reduction_cells.html",
    matching=days_matching,
    usual="-day",
    form=ReductionFilterForm,
    chips=(
        Chip(label="Sites", query={"kind": "site"}),
        Chip(label="Templates", query={"kind": "template"}),
        Chip(label="Volumes", query={"kind": "volume"}),
    ),
    nothing="Nothing was measured yet. Workers measure each hour.",
)
