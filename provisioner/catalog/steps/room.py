"""Free space and inodes of templates' volumes, and failures for lack of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from provisioner.catalog.models import BuildParameters, Template, TemplateCheck
from provisioner.catalog.steps.run import TemplateRun
from provisioner.engine.models import Operation
from provisioner.gateways.errors import GatewayError, PermanentGatewayError
from provisioner.gateways.hosts.room import (
    NO_SPACE,
    OVER_QUOTA,
    Lack,
    lack_at,
    log_says,
)
from provisioner.gateways.ontap.types import Volume, more_inodes, most_inodes
from provisioner.gateways.perforce.types import TreeSize
from provisioner.lib.refusals import StepRefused
from provisioner.lib.sizes import size_text
from provisioner.sites.models import AggregateSpace

MARGIN_PERCENT = 20
"""What a build may need beyond what the last one of its kind added."""

INODES_FOR_A_FILE = 3
"""A file has one, and a build makes others: objects, directories, its own notes."""

_CODES = {
    Lack.INODES: "volume_out_of_inodes",
    Lack.BYTES: "volume_full",
    Lack.QUOTA: "volume_over_quota",
}
_WHAT = {
    Lack.INODES: "The volume {name} has no inodes left.",
    Lack.BYTES: "The volume {name} is full.",
    Lack.QUOTA: "A quota of the volume {name} is used up.",
}
_AT_QUOTA = (
    "Ask a storage administrator to raise it: Cloneyard sets no quotas in ONTAP. Then "
    "retry."
)
_OF_TEMPLATES = {
    Lack.INODES: "The next build gives it more, up to one for each 4 KB; beyond that, "
    "give the template a larger volume.",
    Lack.BYTES: "Give the template a larger volume, then build again.",
}


@dataclass(frozen=True, kw_only=True)
class Room:
    """Free space and inodes of a volume, and refusals when there are none.

    `root` is read only after a failure.
    """

    volume_name: str
    root: Callable[[], Path]
    advice: Mapping[Lack, str]

    @contextmanager
    def told_if_lacking(self) -> Iterator[None]:
        """Turn failures for lack of space into a refusal that says so.

        Raises: StepRefused.
        """
        try:
            yield
        except GatewayError as error:
            self.require(after=error.sentence)
            raise

    def require(self, *, after: str) -> None:
        """Refuse with the missing resource if a failure was for lack of space.

        Raises: StepRefused.
        """
        if OVER_QUOTA in after:
            self._refuse(Lack.QUOTA, after=after)
        if NO_SPACE in after:
            self._refuse(self.lack(), after=after)

    def require_after_command(self, log: Path, *, after: str) -> None:
        """Like `require`, judging by the whole log of the failed command.

        Raises: StepRefused.
        """
        self._refuse(self.lack_told_in(log), after=after)

    def lack_told_in(self, log: Path) -> Lack | None:
        """Return what a command lacked by its log, None if nothing."""
        if log_says(log, OVER_QUOTA):
            return Lack.QUOTA
        return self.lack() if log_says(log, NO_SPACE) else None

    def _refuse(self, lack: Lack | None, *, after: str) -> None:
        if lack is not None:
            raise StepRefused(f"{self.sentence(lack)}\n{after}", code=_CODES[lack])

    def lack(self) -> Lack | None:
        """Return the exhausted resource, or None."""
        return lack_at(self.root())

    def sentence(self, lack: Lack) -> str:
        what = _WHAT[lack].format(name=self.volume_name)
        return f"{what} {self.advice.get(lack, _AT_QUOTA)}"


def room_of_template(run: TemplateRun) -> Room:
    """Return the room in the volume where a template is built."""
    template = run.template
    return Room(
        volume_name=template.volume_name,
        root=lambda: run.visible_root(template.junction_path),
        advice=_OF_TEMPLATES,
    )


def ensure_inodes(
    run: TemplateRun, volume: Volume, *, counted: TreeSize | None
) -> None:
    """Raise the volume's inode limit for the known files, or when few are left.

    Unused inodes take no space, so a high limit does no harm.

    Raises: StepRefused.
    """
    files = max(_known_files(run.template), counted.files if counted else 0)
    most = most_inodes(volume.size_bytes)
    if files > most:
        raise StepRefused(
            f"The template has {files:,} files, and a volume of "
            f"{size_text(volume.size_bytes)} can have {most:,}. Nothing was changed: "
            "give the template more, then build again.",
            code="volume_too_small_for_its_files",
        )
    used, given = volume.used_inodes or 0, volume.max_inodes
    wanted = min(most, max(files * INODES_FOR_A_FILE, more_inodes(used, given or 0)))
    if given is not None and wanted > given:
        run.ontap.set_max_inodes(volume.uuid, max_inodes=wanted)


def began_clean(operation: Operation) -> bool:
    """Return whether a build starts without leftovers of another one."""
    earlier = Operation.objects.filter(
        subject=operation.subject_id, pk__lt=operation.pk
    )
    return BuildParameters.of(operation).clean or not earlier.exists()


def require_room_to_build(
    run: TemplateRun, volume: Volume, *, counted: TreeSize | None
) -> None:
    """Refuse a build that the volume, or its aggregate, has too little room for.

    What is not known refuses nothing, nor does a volume that ONTAP grows when it fills,
    nor the aggregate of a thick one, which has its space already.

    Raises: StepRefused.
    """
    needed = _bytes_to_build(run, volume, counted=counted)
    if needed is None:
        run.progress("What such a build adds is not known: none was measured yet.")
        return
    free = volume.free_bytes
    if free is not None and free < needed and not volume.sizes_itself:
        raise StepRefused(
            f"A build needs about {size_text(needed)}, and the volume {volume.name} "
            f"has {size_text(free)} free of {size_text(volume.size_bytes)}. "
            "Give the template a larger volume, or keep fewer snapshots. Then build "
            "again.",
            code="no_room_to_build",
        )
    is_thick = volume.guarantee == "volume"
    room = None if is_thick else _room_in_aggregate(run, volume.aggregate)
    if room is not None and room < needed:
        raise StepRefused(
            f"A build needs about {size_text(needed)}, and the aggregate "
            f"{volume.aggregate} has room for {size_text(room)}. Free space there, "
            "move the template to another aggregate, or ask a storage administrator "
            "for more. Then build again.",
            code="no_room_to_build",
        )


def _bytes_to_build(
    run: TemplateRun, volume: Volume, *, counted: TreeSize | None
) -> int | None:
    """Return what a build adds to the volume, with a margin; None if not known.

    As the last one of its kind did, except the first, which fetched the whole view.
    Before there is a snapshot it is at least the files of the view, without what failed
    builds left in the volume.
    """
    snapshots = run.template.snapshots.order_by("pk")
    first = snapshots.first()
    added: int | None = None
    if first is not None:
        like_it = snapshots.filter(
            pk__gt=first.pk,
            is_clean=began_clean(run.operation),
            grew_bytes__isnull=False,
        )
        added = like_it.values_list("grew_bytes", flat=True).last()
    elif counted is not None:
        added = max(counted.bytes - (volume.used_bytes or 0), 0)
    return None if added is None else added * (100 + MARGIN_PERCENT) // 100


def _room_in_aggregate(run: TemplateRun, name: str) -> int | None:
    """Return what the site may take of an aggregate; None if we may not ask."""
    try:
        found = run.ontap.get_aggregate(name)
    except PermanentGatewayError:
        return None
    return AggregateSpace(
        site=run.site,
        size_bytes=found.size_bytes,
        available_bytes=found.available_bytes,
    ).room_bytes


def _known_files(template: Template) -> int:
    """Return the number of files in the newest snapshot, or in the counted view."""
    newest = template.snapshots.order_by("-pk").first()
    check = TemplateCheck.objects.filter(template=template).first()
    seen = check.files if check is not None else None
    return max(newest.have_count if newest is not None else 0, seen or 0)
