"""Lists of mirrors, and of the snapshots of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from provisioner.lib.tables import Cell
from provisioner.mirrors.forms import MirroredSnapshotFilterForm, MirrorFilterForm
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.overviews import overviews_of
from provisioner.mirrors.queries import mirrors_visible_to
from provisioner.web.lists.listing import Chip, Column, Listing, searched


def _newest(field: str) -> Callable[[Any], Cell]:
    """Return the cell with a field of the newest snapshot there, empty without one."""
    return lambda row: getattr(row.newest, field, None)


MIRRORS = Listing[Mirror](
    name="mirrors",
    one="mirror",
    many="mirrors",
    columns=(
        Column("template", "Template", "mirror.template.name", "template__name"),
        Column("home", "", "mirror.template.site.name"),
        Column("site", "Site", "mirror.site.name", "site__name", is_unbroken=True),
        Column("state", "State", "mirror.state", "state"),
        Column("newest", "Newest snapshot", _newest("name")),
        Column("change", "", _newest("change"), goes_with="newest"),
        Column("behind", "Behind the default", "behind"),
        Column("snapshots_behind", "", "snapshots_behind", goes_with="behind"),
        Column("changes_behind", "", "changes_behind", goes_with="behind"),
        Column("snapshots", "Snapshots", "snapshots", is_number=True),
        Column("trouble", "Trouble", "mirror.trouble", "trouble"),
        Column("status_message", "", "mirror.status_message", goes_with="trouble"),
        Column("volume", "", "mirror.volume_path"),
    ),
    cells="mirrors/_cells.html",
    matching=searched(mirrors_visible_to, "template__name", "site__name"),
    usual="template",
    form=MirrorFilterForm,
    reads=(
        *("name", "tag", "is_former_home", "state", "status_message", "trouble"),
        *("template__name", "template__tag", "template__site__name"),
        *("template__site__perforce_server__name", "site__perforce_server__name"),
        *("site__name", "site__svm"),
    ),
    dress=lambda user, some: overviews_of(some),
    chips=(Chip(label="Failed", query={"state": Mirror.State.FAILED}),),
    quiet_below=10,
    nothing="No template is mirrored to another site.",
)


def snapshots_of(mirror: Mirror) -> Listing[MirroredSnapshot]:
    """Return the list of the snapshots of one mirror."""
    return Listing(
        name="mirrored-snapshots",
        one="snapshot",
        many="snapshots",
        columns=(
            Column("name", "Snapshot", "snapshot.name", "snapshot__name"),
            Column("change", "Change", "snapshot.change", "snapshot__change"),
            Column("quality", "Quality", "snapshot.quality", "snapshot__quality"),
            Column("state", "State", "state", "state"),
            Column("compared_files", "Verified", "compared_files"),
            Column("bytes", "Transferred", "bytes", "bytes", is_number=True),
            Column("seconds", "Took", "seconds", "seconds", is_number=True),
            Column("bytes_per_second", "Rate", "bytes_per_second", is_number=True),
            Column(
                *("arrived_at", "Arrived", "arrived_at", "arrived_at"),
                has_gaps=True,
                begins_descending=True,
            ),
            Column("created_at", "", "snapshot.created_at", "snapshot__created_at"),
        ),
        cells="mirrors/_snapshot_cells.html",
        matching=searched(
            lambda user: mirror.snapshots.select_related("snapshot"), "snapshot__name"
        ),
        usual="-created_at",
        reads=(
            *("state", "bytes", "seconds", "arrived_at", "mirror_id"),
            "compared_files",
            *("snapshot__name", "snapshot__change", "snapshot__quality"),
            *("snapshot__created_at", "snapshot__is_complete"),
        ),
        form=MirroredSnapshotFilterForm,
        quiet_below=10,
        nothing="No snapshot was transferred yet.",
    )
