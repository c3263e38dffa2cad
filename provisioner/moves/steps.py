"""How a template's volume gets to another aggregate. Each step is safe to repeat."""

from __future__ import annotations

import time
from dataclasses import dataclass

from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.steps.run import TemplateRun
from provisioner.catalog.steps.volumes import limits_in_our_words, own_volume
from provisioner.engine.results import StepResult
from provisioner.gateways.errors import Busy
from provisioner.gateways.ontap.polling import pauses
from provisioner.gateways.ontap.types import VolumeMove
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.lib.sizes import size_text
from provisioner.moves.models import Move, TemplatePlace

STALLED_AFTER_SECONDS = 600.0
_STEPS = {
    "queued": "waiting for ONTAP",
    "cutover_wait": "waiting for a cutover",
    "cutover_pending": "waiting for a cutover",
    "cutover": "cutting over",
}


@dataclass(frozen=True)
class MovePlan(StepResult):
    """What the volume takes, with its snapshots."""

    step = "room"
    needed_bytes: int


@dataclass(frozen=True)
class Paused(StepResult):
    """Whether ONTAP keeps the move paused: it may have ended before, or not begun."""

    step = "pause"
    is_paused: bool
    aggregate: str


@dataclass(frozen=True)
class Stopped(StepResult):
    """Where the volume is after a move was stopped: it may have ended before."""

    step = "stop"
    aggregate: str


def ensure_room(run: TemplateRun) -> MovePlan:
    """Check the volume, and that its destination has room for it.

    Raises: StepRefused.
    """
    move, volume = _move_of(run), our_volume(run)
    needed = volume.footprint_bytes or 0
    if volume.aggregate == move.destination:
        return MovePlan(needed)
    if volume.state != "online":
        raise StepRefused(
            f"The volume {volume.name} is {volume.state or 'not online'}. ONTAP moves "
            "only volumes that are online. Bring it online, then move it again.",
            code="volume_offline",
        )
    if volume.is_splitting:
        raise StepRefused(
            f"The volume {volume.name} is being split in ONTAP. Move it afterwards.",
            code="volume_being_split",
        )
    if volume.is_moving and volume.destination != move.destination:
        raise StepRefused(
            f"Somebody moves the volume {volume.name} to {volume.destination} in "
            "ONTAP. Wait until that has ended, or abort it there.",
            code="moved_elsewhere",
        )
    found = {each.name: each for each in run.ontap.list_aggregates()}
    aggregate = found.get(move.destination)
    if aggregate is None or not aggregate.is_assigned:
        raise StepRefused(
            f"The SVM {run.site.svm} has no aggregate {move.destination}. Nothing was "
            "moved.",
            code="aggregate_not_usable",
        )
    kept = aggregate.size_bytes * run.site.free_percent // 100
    room = max(aggregate.available_bytes - kept, 0)
    if needed >= room and not (volume.is_moving or volume.is_paused):
        raise StepRefused(
            f"The volume {volume.name} needs {size_text(needed)}, but the aggregate "
            f"{aggregate.name} has room for {size_text(room)}. Free space there, or "
            "choose another one. Nothing was moved.",
            code="no_room_to_move",
        )
    with run.writing():
        Move.objects.filter(pk=move.pk).update(needed_bytes=needed)
    return MovePlan(needed)


def ensure_moved(run: TemplateRun) -> None:
    """Move the volume, and follow that to its end.

    A move that is under way, as after a worker was killed, is followed; one that was
    paused in ONTAP is resumed.

    Raises: StepRefused (paused, aborted or failed in ONTAP, no space), Busy after ten
    minutes without progress. It goes on, and is followed again.
    """
    needed, move = run.result_of(MovePlan).needed_bytes, _move_of(run)
    uuid = our_volume(run).uuid
    with limits_in_our_words():
        volume = run.ontap.start_move(uuid, aggregate=move.destination)
    _not_paused_any_more(run)
    moved_at, moved = time.monotonic(), ("", -1)
    for pause in pauses():
        if volume.aggregate == move.destination and not volume.is_moving:
            return
        if not volume.is_moving:
            _refuse_end(volume, move)
        percent = volume.percent or 0
        now = (volume.move_state, percent)
        if now != moved:
            moved_at, moved = time.monotonic(), now
        elif time.monotonic() - moved_at > STALLED_AFTER_SECONDS:
            raise Busy(
                f"The move of {volume.name} has stood still at {percent} %: ONTAP says "
                f"{volume.move_state}.",
                system="ontap",
                operation="volume move",
            )
        doing = _STEPS.get(volume.move_state, f"to {move.destination}")
        run.progress(
            f"{percent} %, {doing}",
            done=needed * percent // 100,
            total=needed,
            unit="bytes",
            figures={"percent": percent},
        )
        time.sleep(pause)
        volume = our_volume(run)


def _refuse_end(volume: VolumeMove, move: Move) -> None:
    """Raises: StepRefused as the move ended before the volume was there."""
    if volume.is_paused:
        raise StepRefused(
            f"The move of {volume.name} was paused in ONTAP. Resume it there, or move "
            f"it again: it continues where it was.",
            code="move_paused",
        )
    if volume.move_state == "failed":
        raise StepRefused(
            f"ONTAP could not move {volume.name} to {move.destination}; it is in "
            f"{volume.aggregate} as before. “volume move show” in ONTAP says why.",
            code="move_failed",
        )
    raise StepRefused(
        f"The move of {volume.name} was aborted in ONTAP. It is in {volume.aggregate} "
        "as before. Move it again if you still want that.",
        code="move_aborted",
    )


def ensure_recorded(run: TemplateRun) -> None:
    """Verify where the volume is, and record it with its snapshots.

    Raises: StepRefused.
    """
    move, volume = _move_of(run), our_volume(run)
    if volume.aggregate != move.destination:
        raise StepRefused(
            f"ONTAP says that {volume.name} is in {volume.aggregate}, not in "
            f"{move.destination}. Move it again.",
            code="move_unproven",
        )
    record_place(run, volume)


def ensure_paused(run: TemplateRun) -> Paused:
    """Pause the move in ONTAP, and record that. A move that has ended stays so."""
    run.ontap.pause_move(our_volume(run).uuid)
    volume = our_volume(run)
    _not_paused_any_more(run)
    if volume.is_paused:
        with run.writing():
            moves = Move.objects.filter(
                template=run.template, destination=volume.destination
            )
            last = moves.order_by("-pk").values("pk")[:1]
            Move.objects.filter(pk__in=last).update(paused_at=clocks.database_now())
    else:
        record_place(run, volume)
    return Paused(volume.is_paused, volume.aggregate)


def _not_paused_any_more(run: TemplateRun) -> None:
    with run.writing():
        Move.objects.filter(template=run.template).update(paused_at=None)


def ensure_stopped(run: TemplateRun) -> Stopped:
    """Abort the move in ONTAP, and record where the volume is."""
    run.ontap.stop_move(our_volume(run).uuid)
    volume = our_volume(run)
    _not_paused_any_more(run)
    record_place(run, volume)
    return Stopped(volume.aggregate)


def record_place(run: TemplateRun, volume: VolumeMove) -> None:
    """Record the aggregate, and the UUIDs in case that ONTAP gave others."""
    snapshots = {each.name: each.uuid for each in run.ontap.list_snapshots(volume.uuid)}
    template = run.template
    with run.writing():
        TemplatePlace.objects.update_or_create(
            template=template,
            defaults={
                "tiering_policy": volume.tiering_policy,
                "footprint_bytes": volume.footprint_bytes,
                "measured_at": clocks.database_now(),
            },
        )
        Template.objects.filter(pk=template.pk).update(
            volume_uuid=volume.uuid, aggregate=volume.aggregate
        )
        for snapshot in Snapshot.objects.there().filter(template=template):
            uuid = snapshots.get(snapshot.name, snapshot.ontap_uuid)
            if uuid != snapshot.ontap_uuid:
                Snapshot.objects.filter(pk=snapshot.pk).update(ontap_uuid=uuid)


def our_volume(run: TemplateRun) -> VolumeMove:
    """Return where the template's volume is.

    Raises: StepRefused if it is not there, or does not have our tag.
    """
    return run.ontap.get_move(own_volume(run).uuid)


def _move_of(run: TemplateRun) -> Move:
    return Move.objects.get(operation=run.operation)
