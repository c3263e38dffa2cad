"""The simulated array: its parts, its directories, and how it starts and stops.

The start reconciles files and state: junctions of a killed lab are dropped and made
again, half-made trees are removed, unfinished jobs run again.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO

from provisioner.lab.ontap import given
from provisioner.lab.ontap.config import OntapConfig
from provisioner.lab.ontap.dataplane.loop import detach_image
from provisioner.lab.ontap.dataplane.plane import choose_plane
from provisioner.lab.ontap.dataplane.quotas import find_counters
from provisioner.lab.ontap.dataplane.trash import Trash
from provisioner.lab.ontap.dataplane.usage import Usage
from provisioner.lab.ontap.faults import Faults
from provisioner.lab.ontap.housekeeping import Housekeeping
from provisioner.lab.ontap.jobs import Jobs, now_text
from provisioner.lab.ontap.namespace import choose_namespace
from provisioner.lab.ontap.operations import (
    efficiency_policies,
    qos_policies,
    snapmirror_policies,
    snapshot_directories,
    snapshot_policies,
    snapshots,
)
from provisioner.lab.ontap.operations.schedules import Clock
from provisioner.lab.ontap.operations.verbs import VERBS
from provisioner.lab.ontap.records import (
    DELETING,
    LIVE,
    ExportPolicy,
    Snapshot,
    Svm,
    Volume,
)
from provisioner.lab.ontap.sizes import Sizes
from provisioner.lab.ontap.store import Store

FIRST_POLICY_ID = 8589934593
FIRST_MSID = 2147484673
ROOT_VOLUME_BYTES = 1 << 30

_OPEN_TO_ALL: dict[str, object] = {
    "index": 1,
    "clients": [{"match": "0.0.0.0/0"}, {"match": "::/0"}],
    "protocols": ["any"],
    "ro_rule": ["any"],
    "rw_rule": ["any"],
    "superuser": ["any"],
    "anonymous_user": "65534",
    "allow_suid": True,
    "allow_device_creation": True,
    "allow_nfs_tls_only": False,
    "chown_mode": "restricted",
    "ntfs_unix_security": "fail",
}


class Array:
    """One cluster with its SVM, state and files below ``config.root``."""

    def __init__(self, config: OntapConfig) -> None:
        """Open the root, creating what is missing; nothing runs yet.

        Raises: BlockingIOError if another lab uses the root.
        """
        self.config = config
        self.peer: Array | None = None
        self.settings = config.settings
        self.log = logging.getLogger("cloneyard.lab.ontap")
        self.root = config.root.resolve()
        self._make_directories()
        self._lock_file = _lock(self.root / "lock")
        self.plane = choose_plane(self.root / "data")
        self.trash = Trash(self.plane, self.root / "data" / "trash")
        self.namespace = choose_namespace(self.root / "svm")
        self.store = Store(self.root / "state.sqlite3")
        self.faults = Faults()
        self.counters = (
            find_counters(self.root / "data") if self.plane.method == "btrfs" else None
        )
        self.usage = Usage(self)
        self.sizes = Sizes(self)
        self.jobs = Jobs(
            self, store=self.store, verbs=VERBS, threads=config.job_threads
        )
        self.stopping = threading.Event()
        self._started_at = time.monotonic()
        self.clock = Clock(self)
        self.housekeeping = Housekeeping(self)
        self.showing = threading.Lock()
        self._svms: dict[str, Svm] = {}
        self._identities: dict[str, str] = {}
        self._volume_locks: defaultdict[str, threading.RLock] = defaultdict(
            threading.RLock
        )

    def _make_directories(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        for name, mode in (("data", 0o711), ("svm", 0o755)):
            (self.root / name).mkdir(mode=mode, exist_ok=True)
        inside = (("volumes", 0o711), ("snapshots", 0o700), ("trash", 0o700))
        for name, mode in (*inside, ("shown", 0o700)):
            (self.root / "data" / name).mkdir(mode=mode, exist_ok=True)

    @property
    def whole(self) -> Array:
        """The array with the rows of all SVMs; see accounts."""
        return self

    # --- where things are

    def volume_path(self, volume: Volume) -> Path:
        """Return the directory of the volume's files."""
        return self.root / "data" / "volumes" / volume.uuid

    def snapshot_path(self, snapshot: Snapshot) -> Path:
        """Return the directory of the snapshot's files."""
        return self.root / "data" / "snapshots" / snapshot.uuid

    def svm(self, uuid: str) -> Svm:
        """Return an SVM; they are neither changed nor deleted."""
        if uuid not in self._svms:
            self._svms[uuid] = self.store.get(Svm, uuid)
        return self._svms[uuid]

    def mount_root(self, svm: Svm) -> Path:
        """Return the top of the SVM's namespace."""
        return self.root / "svm" / svm.name / "ns"

    def place_of(self, volume: Volume) -> Path:
        """Return where a mounted volume appears."""
        assert volume.junction_path is not None
        svm = self.svm(volume.svm_uuid)
        return self.mount_root(svm) / volume.junction_path.lstrip("/")

    def snapshot_directory(self, volume: Volume) -> Path:
        """Return the directory mounted as the volume's .snapshot."""
        return self.root / "data" / "shown" / volume.uuid

    def uptime_seconds(self) -> int:
        """Return how long the array has been running."""
        return int(time.monotonic() - self._started_at)

    def identity(self, name: str) -> str:
        """Return the uuid of a unique object, such as the cluster."""
        known = self._identities.get(name)
        if known is None:
            with self.store.transaction():
                stored: str | None = self.store.setting(f"uuid.{name}")
                known = stored or str(uuid.uuid4())
                if stored is None:  # the caller's transaction may yet be undone
                    self.store.remember(f"uuid.{name}", known)
                else:
                    self._identities[name] = known
        return known

    @contextlib.contextmanager
    def busy(self, *volume_uuids: str) -> Iterator[None]:
        """Serialize the jobs that work on these volumes."""
        with contextlib.ExitStack() as stack:
            for key in sorted(set(volume_uuids)):
                stack.enter_context(self._volume_locks[key])
            yield

    # --- start and end

    def start(self) -> None:
        """Reconcile files and state; no job runs yet."""
        for name in (self.config.svm, *self.config.more_svms):
            self._seed_svm(name)
        qos_policies.seed(self)
        snapmirror_policies.seed(self)
        snapshot_policies.seed(self)
        efficiency_policies.seed(self)
        self._drop_strays()
        if self.config.volumes is not None:
            given.take(self, self.config.volumes)
        svms = self.store.select(Svm)
        junctions = {s.uuid: self._junctions(s) for s in svms}
        wanted = {
            at.resolve(): self.volume_path(volume)
            for found in junctions.values()
            for at, volume in found
        }
        # What a killed lab left mounted stays, as in an array that starts again: no
        # client may find an empty directory meanwhile, and write into it.
        self.namespace.part_all(self.root / "svm", but=wanted)
        for svm in svms:
            self._open_namespace(svm, junctions[svm.uuid])
        self.trash.start()

    def resume(self) -> None:
        """Continue unfinished jobs. They may use the peer, which must be running."""
        self.jobs.resume()
        self.housekeeping.start()

    def halt(self) -> None:
        """Stop the jobs; unfinished ones continue at the next start."""
        self.stopping.set()
        self.faults.release()
        self.housekeeping.join()
        self.jobs.stop()

    def stop(self) -> None:
        """Stop the jobs, dismantle the namespace and release the root."""
        self.halt()
        self.usage.stop()
        self.trash.stop()
        self.namespace.part_all(self.root / "svm")
        self.store.close()
        self._lock_file.close()

    def _seed_svm(self, name: str) -> None:
        if self.store.select(Svm, name=name):
            return
        svm = Svm(str(uuid.uuid4()), name=name, root_volume_uuid=str(uuid.uuid4()))
        policy = ExportPolicy(
            self.store.next_number("export_policy", start=FIRST_POLICY_ID),
            svm_uuid=svm.uuid,
            name="default",
            rules=[_OPEN_TO_ALL],
        )
        root_volume = Volume(
            svm.root_volume_uuid,
            svm_uuid=svm.uuid,
            name=f"{name}_root",
            size_bytes=ROOT_VOLUME_BYTES,
            create_time=now_text(),
            export_policy_id=policy.id,
            msid=self.store.next_number("msid", start=FIRST_MSID),
            phase=LIVE,
            junction_path="/",
            guarantee="none",
            is_svm_root=True,
        )
        path = self.volume_path(root_volume)
        self.plane.create(path)
        path.chmod(0o755)
        with self.store.transaction():
            self.store.save(svm)
            self.store.save(policy)
            self.store.save(root_volume)

    def _drop_strays(self) -> None:
        """Remove trees without a row, whose jobs never finished."""
        known = {row.uuid for row in self.store.select(Volume)}
        known |= {row.uuid for row in self.store.select(Snapshot)}
        for directory in ("volumes", "snapshots"):
            for path in sorted((self.root / "data" / directory).iterdir()):
                name, _, step = path.name.partition(".")
                whole = path.with_name(name)
                if step == "new" and name in known and not whole.exists():
                    path.rename(whole)  # a restore was cut off in its last step
                elif step or name not in known:
                    self.trash.put(path)
        for row in self.store.select(Snapshot, phase=DELETING):
            snapshots.drop(self, row)

    def _junctions(self, svm: Svm) -> list[tuple[Path, Volume]]:
        """Return the junctions of volumes, parents first."""
        top = self.mount_root(svm)
        mounted = [
            (volume.junction_path, volume)
            for volume in self.store.select(Volume, svm_uuid=svm.uuid, phase=LIVE)
            if volume.junction_path is not None
        ]
        mounted.sort(key=lambda one: len(one[0]))
        return [(top / path.lstrip("/"), volume) for path, volume in mounted]

    def _open_namespace(self, svm: Svm, junctions: list[tuple[Path, Volume]]) -> None:
        top = self.mount_root(svm)
        top.parent.mkdir(exist_ok=True)
        if top.is_symlink():
            top.unlink()
        for at, volume in junctions:
            try:
                if at.is_symlink():
                    at.unlink()
                self.namespace.join(self.volume_path(volume), at=at)
                snapshot_directories.refresh(self, volume.uuid)
            except OSError:
                self.log.exception("volume %s cannot be mounted again", volume.name)
                self.store.save(replace(volume, junction_path=None))

    # --- space

    def filesystem(self) -> os.statvfs_result:
        """Return the size and the free space of the lab's filesystem."""
        return os.statvfs(self.root / "data")

    def aggregates(self) -> tuple[str, ...]:
        """Return the names of the aggregates, the first one first."""
        return (self.config.aggregate, *self.config.more_aggregates)

    def aggregate_of(self, volume: Volume) -> dict[str, object]:
        """Return name and uuid of a volume's aggregate."""
        name = volume.aggregate or self.config.aggregate
        return {"name": name, "uuid": self.aggregate_uuid(name)}

    def aggregate_uuid(self, name: str) -> str:
        """Return the uuid of an aggregate."""
        is_first = name == self.config.aggregate
        return self.identity("aggregate" if is_first else f"aggregate.{name}")

    def aggregate_bytes(self, name: str = "") -> tuple[int, int]:
        """Return size and available bytes of an aggregate, by default the first one.

        Each has a size of its own and counts its own volumes. All are on one
        filesystem: none has more free than that.

        Source: `space.block_storage` of `/storage/aggregates` in the ONTAP REST
        reference.
        """
        name = name or self.config.aggregate
        is_first = name == self.config.aggregate
        status = self.filesystem()
        size, free = (
            status.f_blocks * status.f_frsize,
            status.f_bavail * status.f_frsize,
        )
        own = self.settings.aggregate_bytes.get(name)
        said: int | None = self.store.setting(given.AGGREGATE_BYTES)
        if is_first and said is not None:
            size, free = said, max(0, said - self.usage.bytes_in(name))
        elif own is not None or not is_first:
            size = size if own is None else own
            free = min(free, max(0, size - self.usage.bytes_in(name)))
        if self.settings.aggregate_is_full:
            free = 0
        return size, max(0, free - self.usage.reserved_bytes(name))


def _lock(path: Path) -> IO[str]:
    handle = path.open("w")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        handle.close()
        raise
    return handle


def forget(root: Path) -> None:
    """Remove a stopped lab with all its volumes, and the peer inside it.

    Raises: BlockingIOError if a lab uses the root.
    """
    if not root.exists():
        return
    forget(root / "peer")
    handle = _lock(root / "lock")
    try:
        choose_namespace(root).part_all(root / "svm")
        if os.path.ismount(root / "data"):
            detach_image(root)
        else:
            plane = choose_plane(root)
            for path in root.glob("data/*/*"):
                plane.remove(path)
        shutil.rmtree(root)
    finally:
        handle.close()
