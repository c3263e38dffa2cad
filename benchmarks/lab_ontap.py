"""What the lab's ONTAP takes: one big template, and many clones at once, on btrfs.

Prints JSON lines. Needs root and mkfs.btrfs; LAB_BENCH_FILES and LAB_BENCH_CLONES
change the numbers. The lab runs in a process of its own, whose memory is measured.
However it ends, by SIGTERM or SIGINT too, it leaves no process, mount or file behind.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import requests
from shared.endings import end_in_order

FILES = int(os.environ.get("LAB_BENCH_FILES", "300000"))
CLONES = int(os.environ.get("LAB_BENCH_CLONES", "200"))
# ONTAP gives a volume an inode for each 32 KB.
BYTES_OF_EACH = 64 << 10
PER_DIRECTORY = 1000
SECONDS = 120
VOLUMES = "/api/storage/volumes"
REPOSITORY = Path(__file__).resolve().parent.parent


class Lab:
    """A lab in a process of its own."""

    def __init__(self, root: Path) -> None:
        """Start it on a btrfs image in `root`."""
        command = [sys.executable, "-m", "provisioner.lab.ontap", "--root", str(root)]
        self.process = subprocess.Popen(
            [*command, "--btrfs", "6GB"],
            stdout=subprocess.PIPE,
            cwd=REPOSITORY,
            process_group=0,  # Ctrl-C is for us; we end it when we are done
        )

    def wait_until_ready(self) -> None:
        """Wait for the line that says where it is."""
        assert self.process.stdout is not None
        self.ready = json.loads(self.process.stdout.readline())
        self.mount_root = Path(self.ready["mount_root"])

    def session(self) -> requests.Session:
        """Return a session that is let in."""
        session = requests.Session()
        session.trust_env = False
        session.auth = (self.ready["user"], self.ready["password"])
        session.verify = self.ready["ca_file"]
        return session

    def url(self, path: str) -> str:
        """Return where a path is."""
        return f"https://{self.ready['host']}:{self.ready['port']}{path}"

    def memory_bytes(self, name: str) -> int:
        """Return the resident memory of the process (VmRSS), or its peak (VmHWM)."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(row for row in status.splitlines() if row.startswith(name))
        return int(line.split()[1]) * 1024

    def stop(self) -> None:
        """End the process."""
        self.process.terminate()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def done(
    lab: Lab, session: requests.Session, method: str, path: str, body: Any = None
) -> float:
    """Send a write, wait for its job and return how long that took in seconds.

    Raises: RuntimeError with the answer when it is an error.
    """
    began = time.perf_counter()
    response = session.request(
        method,
        lab.url(path),
        json=body,
        params={"return_timeout": SECONDS},
        timeout=SECONDS,
    )
    if response.status_code not in (200, 201):
        raise RuntimeError(f"{method} {path}: {response.status_code} {response.text}")
    return time.perf_counter() - began


def uuid_of(lab: Lab, session: requests.Session, name: str) -> str:
    """Return the uuid of the volume with the name."""
    found = session.get(lab.url(VOLUMES), params={"name": name}, timeout=SECONDS)
    uuid: str = found.json()["records"][0]["uuid"]
    return uuid


def report(**figures: Any) -> None:
    """Print one line."""
    print(json.dumps({"benchmark": "lab_ontap", **figures}), flush=True)


def fill(directory: Path) -> None:
    """Make the template's files."""
    for number in range(0, FILES, PER_DIRECTORY):
        inside = directory / f"d{number}"
        inside.mkdir()
        for index in range(min(PER_DIRECTORY, FILES - number)):
            os.close(os.open(f"{inside}/f{index}", os.O_CREAT | os.O_WRONLY))
    os.sync()


def clone_of(name: str, **fields: Any) -> dict[str, Any]:
    """Return the body that asks for a clone of the template."""
    return {
        "name": name,
        "svm.name": "svm_dev",
        "clone.parent_volume.name": "template",
        "clone.parent_snapshot.name": "base",
        "nas.path": f"/{name}",
        **fields,
    }


def one_by_one(lab: Lab) -> None:
    """Time snapshot, clone and destroy of the big template."""
    session = lab.session()
    body = {
        "name": "template",
        "svm.name": "svm_dev",
        "aggregates": [{"name": "aggr1"}],
        "size": FILES * BYTES_OF_EACH,
        "guarantee.type": "none",
        "nas.path": "/template",
    }
    done(lab, session, "POST", VOLUMES, body)
    fill(lab.mount_root / "template")
    snapshots = f"{VOLUMES}/{uuid_of(lab, session, 'template')}/snapshots"
    done(lab, session, "POST", snapshots, {"name": "base"})
    times: dict[str, list[float]] = {"snapshot": [], "clone": [], "destroy": []}
    for number in range(10):
        name, snapshot = f"one{number}", {"name": f"s{number}"}
        times["snapshot"].append(done(lab, session, "POST", snapshots, snapshot))
        times["clone"].append(done(lab, session, "POST", VOLUMES, clone_of(name)))
        path = f"{VOLUMES}/{uuid_of(lab, session, name)}?force=true"
        times["destroy"].append(done(lab, session, "DELETE", path))
    for verb, seconds in times.items():
        report(
            case=verb,
            files=FILES,
            median_ms=round(1000 * statistics.median(seconds), 1),
            max_ms=round(1000 * max(seconds), 1),
        )
    owned = clone_of("owned", **{"nas.uid": 1001, "nas.gid": 1001})
    took = done(lab, session, "POST", VOLUMES, owned)
    report(case="clone re-owned", files=FILES, seconds=round(took, 2))


def all_at_once(lab: Lab) -> None:
    """Ask for many clones of the template at the same moment."""
    before = lab.memory_bytes("VmRSS")
    times: list[float] = []
    failures: list[str] = []
    together = threading.Barrier(CLONES + 1)

    def ask(number: int) -> None:
        session = lab.session()
        together.wait()
        try:
            body = clone_of(f"many{number}")
            times.append(done(lab, session, "POST", VOLUMES, body))
        except (requests.RequestException, RuntimeError) as error:
            failures.append(str(error))

    threads = [
        threading.Thread(target=ask, args=(n,), daemon=True) for n in range(CLONES)
    ]
    for thread in threads:
        thread.start()
    together.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - began
    report(
        case="clones at once",
        files=FILES,
        clones=CLONES,
        errors=len(failures),
        first_error=failures[0] if failures else None,
        clones_per_second=round(len(times) / seconds, 1),
        p95_ms=round(1000 * statistics.quantiles(times, n=20)[-1], 1),
        memory_before_mb=round(before / 1e6, 1),
        memory_peak_mb=round(lab.memory_bytes("VmHWM") / 1e6, 1),
    )


def run(root: Path) -> None:
    """Run both on a lab in `root`, which is removed afterwards."""
    lab = Lab(root)
    try:
        lab.wait_until_ready()
        if lab.ready["copy_method"] != "btrfs":
            report(case="skipped", reason="btrfs needs root and mkfs.btrfs")
            return
        one_by_one(lab)
        all_at_once(lab)
    finally:
        lab.stop()
        command = [sys.executable, "-m", "provisioner.lab.ontap", "--forget"]
        subprocess.run(
            [*command, "--root", str(root)], cwd=REPOSITORY, timeout=60, check=True
        )


def main() -> None:
    """Measure, and clean up however that ends."""
    end_in_order()
    with tempfile.TemporaryDirectory(prefix="lab-bench-", dir="/var/tmp") as directory:
        run(Path(directory) / "lab")


if __name__ == "__main__":
    main()
