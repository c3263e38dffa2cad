"""Storage efficiency of volumes: its settings, and the scanner for duplicate blocks.

Source: ``efficiency.*`` of ``/storage/volumes`` in the ONTAP REST reference.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from provisioner.lab.ontap.dataplane.duplicates import Stopped, scan
from provisioner.lab.ontap.errors import OntapError
from provisioner.lab.ontap.jobs import Postponed, now_text
from provisioner.lab.ontap.operations import efficiency_policies
from provisioner.lab.ontap.records import Volume

if TYPE_CHECKING:
    from provisioner.lab.ontap.array import Array

Fields = Mapping[str, Any]

SETTINGS = ("dedupe", "compression", "compaction", "cross_volume_dedupe", "policy")
_TELL_SECONDS = 0.2
_LOOK_SECONDS = 0.05


def check(array: Array, volume: Volume, fields: Fields) -> None:
    """Refuse bad settings.

    Raises: OntapError 2 for a policy that the SVM does not have, as NetApp documents no
    code; 6881332, 6881612, 6881640, 6881661.
    """
    efficiency_policies.check_named(array, volume, fields)
    if "efficiency.state" in fields:
        raise OntapError("6881640", target="efficiency.state")
    wanted = settings_of(volume, fields)
    for name in ("dedupe", "cross_volume_dedupe"):
        asked = fields.get(f"efficiency.{name}")
        if asked in ("inline", "both") and not array.settings.all_flash:
            raise OntapError("6881612", target=f"efficiency.{name}")
    if fields.get("efficiency.scanner.state") == "active":
        if not is_enabled(wanted):
            raise OntapError("6881332", target="efficiency", volume=volume.name)
        if wanted.get("policy") == "inline-only":
            raise OntapError("6881661", target="efficiency", volume=volume.name)
        if volume.state != "online":
            raise OntapError("9437885", svm="", name=volume.name)


def is_enabled(efficiency: Mapping[str, object]) -> bool:
    """Return whether these settings save any space."""
    return any(
        efficiency.get(name, "none") != "none" for name in ("dedupe", "compression")
    )


def settings_of(volume: Volume, fields: Fields) -> dict[str, object]:
    """Return the settings of a volume, changed by those of a body."""
    changed = dict(volume.efficiency)
    for name in SETTINGS:
        key = "efficiency.policy.name" if name == "policy" else f"efficiency.{name}"
        if key in fields:
            changed[name] = fields[key]
    return changed


def apply(array: Array, volume_uuid: str, changes: Fields) -> None:
    """Store the settings, and start or stop the scanner."""
    with array.store.transaction():
        volume = array.store.get(Volume, volume_uuid)
        efficiency = settings_of(volume, changes)
        was_active = efficiency.get("op_state") == "active"
        state = changes.get("efficiency.scanner.state")
        job = None
        if state == "idle" and was_active:
            efficiency |= {"op_state": "idle", "idle_since": time.time()}
        elif state == "active" and not was_active:
            efficiency |= {
                "op_state": "active",
                "progress": "0 KB Scanned",
                "last_op_begin": now_text(),
            }
            job = array.jobs.create(
                "efficiency_scan",
                description=f"volume efficiency start {volume.name}",
                svm_uuid=volume.svm_uuid,
                arguments={"volume_uuid": volume_uuid},
            )
        array.store.save(replace(volume, efficiency=efficiency))
    if job is not None:
        array.jobs.start(job)


def inherited(volume: Volume) -> dict[str, object]:
    """Return what a clone of the volume begins with: the settings, without results."""
    return {k: v for k, v in volume.efficiency.items() if k in SETTINGS}


def run(array: Array, arguments: Fields) -> None:
    """Look for duplicates in the volume's files and report the space they take.

    Raises: Postponed when the lab stops; the scan starts over at the next start.
    """
    volume_uuid: str = arguments["volume_uuid"]
    volume = array.store.find(Volume, volume_uuid)
    if volume is None or volume.efficiency.get("op_state") != "active":
        return
    told, began = 0.0, time.monotonic()

    def go_on(share: float) -> bool:
        nonlocal told
        if array.stopping.is_set():
            return False
        if time.monotonic() - told < _TELL_SECONDS:
            return True
        told = time.monotonic()
        return _tell(array, volume_uuid, progress=f"{round(100 * share)}% Done")

    can_share = array.plane.method != "copy" and volume.type == "rw"
    try:
        found = scan(array.volume_path(volume), share=can_share, go_on=go_on)
        while time.monotonic() - began < array.settings.scan_seconds:
            if not go_on(1.0):
                raise Stopped
            time.sleep(_LOOK_SECONDS)
    except Stopped:
        if array.stopping.is_set():
            raise Postponed from None
        return
    _tell(
        array,
        volume_uuid,
        op_state="idle",
        progress="Idle for 00:00:00",
        idle_since=time.time(),
        last_op_end=now_text(),
        last_op_state="success",
        last_op_err="operation succeeded",
        last_op_size=found.scanned_bytes,
        saved=found.duplicate_bytes,
        scanned=found.scanned_bytes,
        sharing=found.shared_bytes,
    )


def _tell(array: Array, volume_uuid: str, **values: object) -> bool:
    """Store results in a volume that is still being scanned; return whether it is."""
    with array.store.transaction():
        volume = array.store.find(Volume, volume_uuid)
        if volume is None or volume.efficiency.get("op_state") != "active":
            return False
        array.store.save(replace(volume, efficiency={**volume.efficiency, **values}))
    return True


def view(array: Array, volume: Volume) -> dict[str, object]:
    """Return the fields of a volume about its efficiency."""
    state = volume.efficiency

    def number(name: str) -> int:
        return int(str(state.get(name, 0)))

    saved, scanned = number("saved"), number("scanned")
    percent = 100 * saved // scanned if scanned else 0
    result: dict[str, object] = {
        "efficiency.state": "enabled" if is_enabled(state) else "disabled",
        "efficiency.dedupe": state.get("dedupe", "none"),
        "efficiency.compression": state.get("compression", "none"),
        "efficiency.compaction": state.get("compaction", "none"),
        "efficiency.cross_volume_dedupe": state.get("cross_volume_dedupe", "none"),
        "efficiency.op_state": state.get("op_state", "idle"),
        "efficiency.progress": lambda: _progress(state),
        "efficiency.policy.name": state.get("policy", "-"),
        "efficiency.schedule": lambda: (
            efficiency_policies.schedule_of(array, volume) or "-"
        ),
        "efficiency.type": "regular",
        "efficiency.volume_path": f"/vol/{volume.name}",
        "efficiency.has_savings": saved > 0,
        "efficiency.ratio": round(scanned / (scanned - saved), 2) if saved else 1.0,
        "efficiency.scanner.state": state.get("op_state", "idle"),
        "efficiency.space_savings.dedupe": saved,
        "efficiency.space_savings.dedupe_percent": percent,
        "efficiency.space_savings.dedupe_sharing": number("sharing"),
        "efficiency.space_savings.compression": 0,
        "efficiency.space_savings.compression_percent": 0,
        "efficiency.space_savings.total": saved,
        "efficiency.space_savings.total_percent": percent,
    }
    for name in ("begin", "end", "size", "state", "err"):
        result[f"efficiency.last_op_{name}"] = state.get(f"last_op_{name}")
    return result


def _progress(state: Mapping[str, object]) -> str:
    if state.get("op_state") == "active" or "idle_since" not in state:
        return str(state.get("progress", "Idle for 00:00:00"))
    seconds = int(time.time() - float(str(state["idle_since"])))
    return f"Idle for {seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
