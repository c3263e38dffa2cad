"""The size and the settings that Cloneyard gave a volume, as far as rows say."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from provisioner.catalog.models import Template, VolumePolicy
from provisioner.catalog.volume_policies import in_force_since, wanted_settings
from provisioner.copies.models import WorkspaceCopy
from provisioner.gateways.ontap.types import Volume, VolumeSettings
from provisioner.mirrors.models import Mirror
from provisioner.workspaces.models import Workspace

NOTHING = VolumeSettings()
OF_DESTINATIONS = VolumeSettings(guarantee="none")
"""What the volumes of mirrors and copies are made with, besides ONTAP's defaults."""

AnyRow = Template | Workspace | Mirror | WorkspaceCopy


def wanted_size(row: AnyRow) -> int | None:
    """Return the size that a row's volume was given, None where nothing says it.

    A clone has it from its row: that of its template may have changed since. One that
    a policy grows right now has none. A mirror is as large as its template's volume.
    """
    if isinstance(row, Template):
        return row.volume_size_bytes
    if isinstance(row, Workspace):
        return None if hasattr(row, "growth") else row.volume_size_bytes
    if isinstance(row, Mirror) and not row.is_former_home:
        return row.template.clone_size_bytes
    return None


def settings_wanted(
    row: AnyRow, policies: Iterable[VolumePolicy], *, volume: Volume
) -> VolumeSettings:
    """Return the settings that a row's volume was given.

    What a policy says counts once it has been applied. A clone has what its template's
    volume had when it was made, so only policies count that are older than it and than
    its snapshot. Headroom gave it no more inodes than its template's volume may have.
    Nothing says that it inherits autosize or the snapshot reserve.

    Source: guarantee and fractional reserve are the parent's, by
    https://library.netapp.com/ecmdocs/ECMP1368859/html/GUID-284A0B23-DE4D-4E97-B333-EF4646D2CB1D.html
    """
    if isinstance(row, Mirror | WorkspaceCopy):
        is_former = isinstance(row, Mirror) and row.is_former_home
        return NOTHING if is_former else OF_DESTINATIONS
    template = row.template if isinstance(row, Workspace) else row
    since = in_force_since(template, policies)
    if since is None:
        return NOTHING
    size = volume.size_bytes
    if isinstance(row, Template):
        return wanted_settings(template, policies, size_bytes=size)
    is_of_template = row.site_id == template.site_id and not row.cloned_from
    # ONTAP's clock may be ahead of the database's, which the snapshot's row has.
    made = (volume.created_at, row.snapshot.created_at)
    if not is_of_template or any(each is None or each < since for each in made):
        return NOTHING
    size = min(size, template.clone_size_bytes)
    return replace(
        wanted_settings(template, policies, size_bytes=size),
        autosize_mode=None,
        autosize_max_bytes=None,
        snapshot_reserve_percent=None,
    )
