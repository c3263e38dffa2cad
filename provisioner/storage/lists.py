"""The lists of snapshots, with what holds each, and of volumes that fill up."""

from __future__ import annotations

from provisioner.catalog.models import Snapshot
from provisioner.storage.filling import filling_volumes
from provisioner.storage.forms import SnapshotFilterForm
from provisioner.storage.models import FillingVolume
from provisioner.storage.overviews import held, snapshots_matching
from provisioner.web.lists.listing import Column, Listing, searched

SNAPSHOTS = Listing[Snapshot](
    name="held-snapshots",
    one="snapshot",
    many="snapshots",
    columns=(
        Column("template", "Template", "snapshot.template.name", "template__name"),
        Column("site", "", "snapshot.template.site.name", goes_with="template"),
        Column("name", "Snapshot", "snapshot.name", "name"),
        Column("change", "", "snapshot.change", goes_with="name"),
        Column(
            *("created_at", "Published", "snapshot.created_at", "created_at"),
            begins_descending=True,
        ),
        Column(
            *("size_bytes", "Size", "size_bytes", "size__size_bytes"),
            has_gaps=True,
            is_number=True,
            begins_descending=True,
        ),
        Column("frees_bytes", "Frees", "frees_bytes", is_number=True),
        Column("workspaces", "Workspaces", "workspaces", is_number=True),
        Column("holders", "Held by", "holders"),
        Column("freed_by", "Freed by", "freed_by"),
        Column(
            "measured_at",
            "",
            lambda row: row.size.measured_at if row.size else None,
            goes_with="size_bytes",
        ),
    ),
    cells="storage/_snapshot_cells.html",
    matching=snapshots_matching,
    usual="created_at",
    form=SnapshotFilterForm,
    reads=("name", "change", "created_at", "template_id"),
    dress=lambda user, some: held(some),
    page_size=25,
    nothing="No snapshot is published yet.",
)

FILLING = Listing[FillingVolume](
    name="filling-volumes",
    one="volume",
    many="volumes",
    columns=(
        Column("volume", "Volume", "subject.volume_name"),
        Column("kind", "", "kind", goes_with="volume"),
        Column("name", "", "subject.name", goes_with="volume"),
        Column(
            *("level", "Reached", "level", "level"),
            is_number=True,
            begins_descending=True,
        ),
        Column("fullness", "Measured", "sentence"),
        Column(
            *("crossed_at", "Since", "crossed_at", "crossed_at"),
            is_unbroken=True,
            begins_descending=True,
        ),
    ),
    cells="storage/_filling_cells.html",
    matching=searched(
        filling_volumes,
        "workspace__name",
        "template__name",
        "mirror__name",
        "workspacecopy__name",
        "workspace__owner__username",
    ),
    usual="-level",
    nothing="No volume is 85 % full.",
)
