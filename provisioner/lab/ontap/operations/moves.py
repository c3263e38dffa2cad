"""Move a volume to another aggregate.

Its files stay where they are: all aggregates of the lab are on one filesystem. What is
as in ONTAP: the states of a move, that a moved clone is none any more, and that clones
of a moved volume keep a hidden volume as their parent.

Source: ``movement`` of ``/storage/volumes`` in the ONTAP REST reference;
"Considerations and recommendations when moving volumes"
(docs.netapp.com/us-en/ontap/volumes).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.conventions.fields import Flat
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.jobs import Postponed, now_text
from provisioner.lab.ontap.operations import names
from provisioner.lab.ontap.records import LEFT, LIVE, Job, Snapshot, Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

RUNNING = ("queued", "replicating", "cutover", "cutover_wait", "cutover_pending")
STATES = ("aborted", "cutover", "cutover_wait", "paused", "replicating")
_STEPS = 20
_DESTINATION = "movement.destination_aggregate"


def check(array: Array, volume: Volume, fields: Fields) -> None:
    """Refuse a move, or a change of one, that cannot be.

    Raises: OntapError 918265 same aggregate, 918266 both, 918267 unknown, 918786 no
    move runs, 917536 busy or full (NetApp documents no code).
    """
    state = fields.get("movement.state")
    destination = _destination(array, fields)
    if state is not None and destination is not None:
        raise OntapError("918266", target="movement.state")
    moving = volume.movement.get("state")
    if state is not None and moving not in (*RUNNING, "paused"):
        raise OntapError("918786", target="movement.state", name=volume.name)
    if destination is None:
        return
    if destination == array.aggregate_of(volume)["name"]:
        raise OntapError("918265", target=_DESTINATION, aggregate=destination)
    if moving in (*RUNNING, "paused"):
        raise OntapError(
            "917536", reason=f'A move of volume "{volume.name}" is already running.'
        )
    if volume.is_splitting:
        raise OntapError(
            "917536", reason=f'Volume "{volume.name}" is being split from its parent.'
        )
    needed = array.usage.own_bytes(volume)
    if array.aggregate_bytes(destination)[1] < max(needed, 1):
        raise OntapError(
            "917536", reason=f"There is not enough space in aggregate {destination}."
        )


def _destination(array: Array, fields: Fields) -> str | None:
    name, key = fields.get(f"{_DESTINATION}.name"), fields.get(f"{_DESTINATION}.uuid")
    if name is None and key is None:
        return None
    found = names.aggregate_named(array, name=name, key=key)
    if found is None:
        raise OntapError("918267", target=_DESTINATION, aggregate=name or key)
    return found


def apply(array: Array, volume_uuid: str, changes: Fields) -> None:
    """Begin a move, or pause, resume, abort or end the one that runs."""
    destination = _destination(array, changes)
    with array.store.transaction():
        volume = array.store.get(Volume, volume_uuid)
        state = changes.get("movement.state", "replicating")
        movement = dict(volume.movement)
        if destination is not None:
            movement = {
                "destination": destination,
                "percent_complete": 0,
                "start_time": now_text(),
                "cutover_window": changes.get("movement.cutover_window", 30),
            }
        array.store.save(replace(volume, movement={**movement, "state": state}))
        job = _job(array, volume)
    if state in ("replicating", "cutover"):
        array.jobs.start(job)


def _job(array: Array, volume: Volume) -> Job:
    return array.jobs.create(
        "volume_move",
        description=f"volume move {volume.name}",
        svm_uuid=volume.svm_uuid,
        arguments={"volume_uuid": volume.uuid},
    )


def run(array: Array, arguments: Fields) -> None:
    """Replicate to 100 percent, then cut over as the settings say.

    Raises: Postponed when the lab stops; the move continues at the next start.
    """
    volume_uuid: str = arguments["volume_uuid"]
    while True:
        if array.stopping.wait(array.settings.move_seconds / _STEPS):
            raise Postponed
        with array.store.transaction():
            volume = array.store.find(Volume, volume_uuid)
            if volume is None or volume.phase != LIVE:
                return
            if volume.movement.get("state") == "cutover":
                _cut_over(array, volume)
                return
            if volume.movement.get("state") != "replicating":
                return
            percent = int(str(volume.movement["percent_complete"])) + 100 // _STEPS
            ends = array.settings.move_ends
            state = "replicating"
            if percent >= 100:
                state = "cutover" if ends == "success" else ends
            movement = {
                **volume.movement,
                "state": state,
                "percent_complete": min(percent, 100),
            }
            array.store.save(replace(volume, movement=movement))


def _cut_over(array: Array, volume: Volume) -> None:
    """Let the volume be in its new aggregate, and its clones keep the old blocks."""
    movement = {**volume.movement, "state": "success", "percent_complete": 100}
    clones = array.store.select(Volume, parent_uuid=volume.uuid)
    if clones:
        key = str(uuid.uuid4())
        left = replace(
            volume,
            uuid=key,
            name=f"{volume.name}_TMP_{key[:8]}",
            phase=LEFT,
            junction_path=None,
            said_bytes=0,
            said_own_bytes=0,
        )
        array.store.save(left)
        bases = {}
        for clone in clones:
            base = array.store.find(Snapshot, clone.parent_snapshot_uuid)
            if base is not None and base.uuid not in bases:
                bases[base.uuid] = replace(
                    base, uuid=str(uuid.uuid4()), volume_uuid=key, phase=LEFT
                )
                array.store.save(bases[base.uuid])
            array.store.save(
                replace(
                    clone,
                    parent_uuid=key,
                    parent_snapshot_uuid=bases[base.uuid].uuid if base else None,
                )
            )
    array.store.save(
        replace(
            volume,
            aggregate=str(volume.movement["destination"]),
            movement=movement,
            parent_uuid=None,
            parent_snapshot_uuid=None,
        )
    )


def view(array: Array, volume: Volume) -> Flat:
    """Return the fields of a volume's last move; empty if it was never moved."""
    movement = volume.movement
    if not movement:
        return {}
    name = str(movement["destination"])
    return {
        "movement.destination_aggregate": {
            "name": name,
            "uuid": array.aggregate_uuid(name),
        },
        **{
            f"movement.{field}": movement.get(field)
            for field in ("state", "percent_complete", "start_time", "cutover_window")
        },
    }
