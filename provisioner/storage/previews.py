"""What a split of a workspace's clone would copy and free, before it is requested."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.catalog.retention import Pins, pins_of_snapshot
from provisioner.engine.models import Operation
from provisioner.lib.refusals import ActionRefused
from provisioner.lib.sizes import size_text
from provisioner.lib.times import duration_text
from provisioner.storage.models import SnapshotSize, Split
from provisioner.storage.obstacles import (
    require_permission,
    require_splittable,
    room_of,
)
from provisioner.storage.queries import last_split, measured_rate
from provisioner.web.charts import Chart, Point, Unit
from provisioner.workspaces.models import Workspace


@dataclass(frozen=True, kw_only=True)
class SplitPreview:
    """A workspace's split: what it would do now, and what became of the last one.

    `copies_bytes` is ONTAP's estimate as of `measured_at`, `bytes_per_second` what
    earlier splits at the site reached, `room_bytes` what the aggregate has for it; each
    is None if it is not known. `snapshot_bytes` is what deleting the snapshot frees,
    None before it was measured. `others` are other workspaces that need the snapshot.
    `refusal` says why it cannot be requested now.
    """

    workspace: Workspace
    copies_bytes: int | None
    measured_at: dt.datetime | None
    bytes_per_second: float | None
    room_bytes: int | None
    snapshot_bytes: int | None
    pins: Pins | None
    last: Split | None
    refusal: ActionRefused | None

    @property
    def snapshot(self) -> Snapshot:
        return self.workspace.snapshot

    @property
    def seconds(self) -> float | None:
        """How long it would take, None if that is not known yet."""
        if self.copies_bytes is None or not self.bytes_per_second:
            return None
        return self.copies_bytes / self.bytes_per_second

    @property
    def others(self) -> int:
        if self.pins is None or self.workspace.is_independent:
            return 0
        return self.pins.workspaces_number - 1

    @property
    def is_unpinned(self) -> bool:
        """Whether no workspace would need the snapshot any more."""
        return self.pins is not None and self.others == 0

    @property
    def is_pruned(self) -> bool:
        """Whether retention would then delete the snapshot."""
        return self.is_unpinned and not self.kept_for

    @property
    def kept_for(self) -> list[str]:
        """What keeps the snapshot besides workspaces, as phrases."""
        return self.pins.reasons if self.pins is not None else []

    @property
    def frees_bytes(self) -> int | None:
        """What retention would then free, None before it was measured."""
        return self.snapshot_bytes if self.is_pruned else 0

    @property
    def operation(self) -> Operation | None:
        return self.last.operation if self.last is not None else None

    @property
    def is_running(self) -> bool:
        operation = self.operation
        return operation is not None and operation.state == Operation.State.RUNNING

    @property
    def copies(self) -> str:
        """A sentence on what is copied, and for how long."""
        if self.copies_bytes is None:
            return "Not measured yet: ONTAP is asked when the split begins."
        said = f"Up to {size_text(self.copies_bytes)}, as ONTAP estimates."
        if self.seconds is None:
            return f"{said} How long that takes is not known yet at this site."
        return f"{said} About {duration_text(self.seconds)}, as fast as earlier splits."

    @property
    def frees(self) -> str:
        """A sentence on what becomes of the snapshot."""
        name = self.snapshot.name
        if self.pins is None:
            return f"Nothing: {name} is deleted already."
        if self.others:
            are = "workspace needs" if self.others == 1 else "workspaces need"
            return f"Nothing yet: {self.others:,} other {are} {name}."
        if self.kept_for:
            return f"Nothing yet: {name} is kept, as {', and '.join(self.kept_for)}."
        said = f"{name} is deleted within minutes, as nothing else needs it."
        much = self.frees_bytes
        return said if much is None else f"{size_text(much)}: {said}"


def own_bytes_chart(workspace: Workspace) -> Chart:
    """Return what a workspace had of its own on each day of the last three months."""
    days = workspace.own_bytes_days.order_by("day").values_list("day", "own_bytes")
    return Chart(
        id="own-bytes",
        title="Space of its own",
        unit=Unit.BYTES,
        columns=("Of its own",),
        points=[_point(day, own) for day, own in days],
        text=lambda own: size_text(int(own)),
        nothing="It was not measured yet.",
    )


def _point(day: dt.date, own_bytes: int) -> Point:
    begin = dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC)
    return Point(
        label=f"{day:%-d %b %Y}",
        at=int(begin.timestamp()),
        value=own_bytes,
        cells=(size_text(own_bytes),),
    )


def split_preview(user: User, workspace: Workspace) -> SplitPreview:
    """Return what a split of a workspace would do now, and why not, if so."""
    refusal: ActionRefused | None = None
    try:
        require_permission(user, workspace)
        require_splittable(workspace)
    except ActionRefused as error:
        refusal = error
    size = SnapshotSize.objects.filter(
        snapshot=workspace.snapshot_id, snapshot__template__site=workspace.site_id
    ).first()
    return SplitPreview(
        workspace=workspace,
        copies_bytes=None if workspace.is_independent else workspace.split_bytes,
        measured_at=workspace.measured_at,
        bytes_per_second=measured_rate(workspace.site),
        room_bytes=room_of(workspace),
        snapshot_bytes=size.frees_bytes if size is not None else None,
        pins=pins_of_snapshot(workspace.snapshot),
        last=last_split(workspace),
        refusal=refusal,
    )
