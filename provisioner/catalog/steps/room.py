"""Free space and inodes of templates' volumes, and failures for lack of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from provisioner.catalog.models import BuildParameters, Template, TemplateCheck
from provisioner.catalog.steps.run import TemplateRun
from provisioner.engine.models import Operation
from provisioner.gateways.errors import GatewayError, PermanentGatewayError
from provisioner.gateways.hosts.room import (
    LITTLE,
    NO_SPACE,
    OVER_QUOTA,
    Lack,
    lack_at,
    lack_of,
    log_says,
)
from provisioner.gateways.ontap.types import Aggregate, Volume, more_inodes, most_inodes
from provisioner.gateways.perforce.types import TreeSize
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.lib.sizes import size_text
from provisioner.sites.models import AggregateSpace
from provisioner.sites.queries import roomiest, spaces_of

log = structlog.get_logger(__name__)

MARGIN_PERCENT = 20
"""What a build may need beyond what earlier ones of its kind added."""

BUILDS_COMPARED = 10
"""How many builds of its kind say what a build adds."""

FEWEST_TO_LEAVE_ONE_OUT = 3
"""Of so many the largest is left out: one unusual build says nothing of the next."""

NEXT_TO_NOTHING = 0.02
"""The share that is left of what is used up where ONTAP might also mean a quota."""

INODES_FOR_A_FILE = 3
"""A file has one, and a build makes others: objects, directories, its own notes."""

_CODES = {
    Lack.INODES: "volume_out_of_inodes",
    Lack.BYTES: "volume_full",
    Lack.QUOTA: "volume_over_quota",
    Lack.AGGREGATE: "aggregate_full",
}
_WHAT = {
    Lack.INODES: "The volume {name} has no inodes left.",
    Lack.BYTES: "The volume {name} is full.",
    Lack.QUOTA: "A quota of the volume {name} is used up.",
    Lack.AGGREGATE: "The aggregate of the volume {name} is full.",
}
_ADVICE = {
    Lack.QUOTA: "Ask a storage administrator to raise it: Cloneyard sets no quotas in "
    "ONTAP. Then retry.",
    Lack.AGGREGATE: "A larger volume would not help. Free space in the aggregate, or "
    "ask a storage administrator to add some. Then retry.",
}
_OF_TEMPLATES = {
    Lack.INODES: "The next build gives it more, up to one for each 4 KB; beyond that, "
    "give the template a larger volume.",
    Lack.BYTES: "Give the template a larger volume, then build again.",
}


@dataclass(frozen=True, kw_only=True)
class Room:
    """Free space and inodes of a volume, and refusals when there are none.

    `root`, and volume and aggregate as ONTAP reports them, are read only after a
    failure.
    """

    volume_name: str
    root: Callable[[], Path]
    volume: Callable[[], Volume | None]
    aggregate: Callable[[str], Aggregate]
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
        self._refuse(self._lack_told_by(lambda told: told in after), after=after)

    def require_after_command(self, log: Path, *, after: str) -> None:
        """Like `require`, judging by the whole log of the failed command.

        Raises: StepRefused.
        """
        self._refuse(self.lack_told_in(log), after=after)

    def lack_told_in(self, log: Path) -> Lack | None:
        """Return what a command lacked by its log, None if nothing."""
        return self._lack_told_by(lambda told: log_says(log, told))

    def _refuse(self, lack: Lack | None, *, after: str) -> None:
        if lack is not None:
            raise StepRefused(f"{self.sentence(lack)}\n{after}", code=_CODES[lack])

    def _lack_told_by(self, was_told: Callable[[str], bool]) -> Lack | None:
        """Return what is used up after a program was told so, None if nothing is here.

        A volume that ONTAP reports as full is full, whatever the program was told: a
        larger quota would not help.
        """
        if was_told(OVER_QUOTA):
            return self._lack_in_ontap(little=NEXT_TO_NOTHING) or Lack.QUOTA
        if was_told(NO_SPACE):
            lack = lack_at(self.root())
            if lack is Lack.INODES:
                return lack
            # A host sees a full aggregate as a full volume.
            in_ontap = self._lack_in_ontap(little=LITTLE, asks_aggregate=True)
            return in_ontap or lack
        return None

    def _lack_in_ontap(
        self, *, little: float, asks_aggregate: bool = False
    ) -> Lack | None:
        """Return what is used up by ONTAP's figures; None if nothing or not known."""
        try:
            volume = self.volume()
        except GatewayError as error:
            log.warning("room_not_known", **error.log_context())
            return None
        if volume is None or volume.free_bytes is None:
            return None
        used, most = volume.used_inodes, volume.max_inodes
        of_files = volume.free_bytes + (volume.used_bytes or 0)
        lack = lack_of(
            bytes_left=volume.free_bytes / max(1, of_files),
            inodes_left=1 - used / most if used is not None and most else 1.0,
            little=little,
        )
        if lack is None and asks_aggregate and volume.guarantee != "volume":
            return self._lack_in_aggregate(volume.aggregate, of_files, little=little)
        return lack

    def _lack_in_aggregate(
        self, name: str, of_files: int, *, little: float
    ) -> Lack | None:
        """Return AGGREGATE if it has little of the space for files that a volume has.

        None if we may not ask.
        """
        try:
            left = self.aggregate(name).available_bytes
        except GatewayError as error:
            log.warning("room_not_known", **error.log_context())
            return None
        return Lack.AGGREGATE if left <= little * of_files else None

    def sentence(self, lack: Lack) -> str:
        what = _WHAT[lack].format(name=self.volume_name)
        return f"{what} {self.advice.get(lack) or _ADVICE[lack]}"


def room_of_template(run: TemplateRun) -> Room:
    """Return the room in the volume where a template is built."""
    template = run.template
    return Room(
        volume_name=template.volume_name,
        root=lambda: run.visible_root(template.junction_path),
        volume=lambda: run.ontap.find_volume(template.volume_name),
        aggregate=run.ontap.get_aggregate,
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

    What is not known refuses nothing, nor does the aggregate of a thick volume, which
    has its space already. One that ONTAP grows by itself has room up to its maximum.

    Raises: StepRefused.
    """
    need = _need_of_build(run, volume, counted=counted)
    if need is None:
        run.progress("What such a build adds is not known: none was measured yet.")
        return
    needed = need.bytes
    free, most = volume.room_bytes, volume.grows_to_bytes or 0
    if free is not None and free < needed:
        size = size_text(max(volume.size_bytes, most))
        grown = ", to which ONTAP grows it" if most > volume.size_bytes else ""
        raise StepRefused(
            f"A build needs about {size_text(needed)} ({need.sum}), and the volume "
            f"{volume.name} has {size_text(free)} free of {size}{grown}. "
            "Give the template a larger volume, or keep fewer "
            "snapshots. Then build again.",
            code="no_room_to_build",
        )
    is_thick = volume.guarantee == "volume"
    room = None if is_thick else _room_in_aggregate(run, volume.aggregate)
    if room is not None and room < needed:
        raise _no_room_in(volume.aggregate, room, need=need)


def _no_room_in(aggregate: str, room: int, *, need: _Need) -> StepRefused:
    return StepRefused(
        f"A build needs about {size_text(need.bytes)} ({need.sum}), and the aggregate "
        f"{aggregate} has room for {size_text(room)}. Free space there, move the "
        "template to another aggregate, or ask a storage administrator for more. Then "
        "build again.",
        code="no_room_to_build",
    )


def aggregate_of_new(run: TemplateRun, *, counted: TreeSize | None) -> tuple[str, str]:
    """Return where the volume of a first build goes, and why not where it was to go.

    The aggregate was chosen when the build was requested. One that has turned full
    since is left for another one of a site that spreads templates.

    Raises: StepRefused (none has room for the view).
    """
    site, chosen = run.site, BuildParameters.of(run.operation).aggregate
    told = run.template.aggregate or chosen or site.aggregate
    if run.template.aggregate or not chosen or not site.spreads_templates:
        return told, ""
    try:
        found = run.ontap.list_aggregates()
    except PermanentGatewayError:
        return told, ""
    need = _of_view(counted, used_bytes=0) or _Need(bytes=0, sum="")
    spaces = spaces_of(site, found, at=clocks.database_now())
    was = next((space for space in spaces if space.name == chosen), None)
    if was is not None and was.room_bytes >= need.bytes:
        return chosen, ""
    best = roomiest(site, [each for each in spaces if each.room_bytes >= need.bytes])
    if best is None:
        raise _no_room_in(chosen, was.room_bytes if was else 0, need=need)
    lacks = (
        f"has room for {size_text(was.room_bytes)} by now"
        if was
        else "no longer belongs to the SVM"
    )
    return best.name, (
        f"The volume goes to the aggregate {best.name}, which has room for "
        f"{size_text(best.room_bytes)}. {chosen}, chosen when the build was requested, "
        f"{lacks}."
    )


def _of_view(counted: TreeSize | None, *, used_bytes: int) -> _Need | None:
    if counted is None:
        return None
    left = max(counted.bytes - used_bytes, 0)
    return _with_margin(left, "the files of the view that are not in it yet")


@dataclass(frozen=True, kw_only=True)
class _Need:
    """What a build adds to its volume with a margin, and how that is computed."""

    bytes: int
    sum: str


def _need_of_build(
    run: TemplateRun, volume: Volume, *, counted: TreeSize | None
) -> _Need | None:
    """Return what a build adds to the volume, with a margin; None if not known.

    As the last ones of its kind did, without the first, which fetched the whole view.
    Before there is a snapshot it is at least the files of the view, without what failed
    builds left in the volume.
    """
    snapshots = run.template.snapshots.order_by("pk")
    first = snapshots.first()
    if first is None:
        return _of_view(counted, used_bytes=volume.used_bytes or 0)
    like_it = snapshots.filter(
        pk__gt=first.pk,
        is_clean=began_clean(run.operation),
        grew_bytes__isnull=False,
    )
    grew = like_it.order_by("-pk").values_list("grew_bytes", flat=True)
    lately = sorted((each or 0 for each in grew[:BUILDS_COMPARED]), reverse=True)
    if not lately:
        return None
    if len(lately) < FEWEST_TO_LEAVE_ONE_OUT:
        return _with_margin(lately[0], f"the most that {_last(len(lately))} added")
    what = f"the most but one that {_last(len(lately))} added"
    return _with_margin(lately[1], what)


def _last(number: int) -> str:
    return f"the last {number} such builds" if number > 1 else "the last such build"


def _with_margin(added: int, what: str) -> _Need:
    return _Need(
        bytes=added * (100 + MARGIN_PERCENT) // 100,
        sum=f"{size_text(added)}, {what}, and {MARGIN_PERCENT} % more",
    )


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
