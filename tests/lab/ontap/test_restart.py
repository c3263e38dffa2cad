"""Stopping, killing and starting again: files and state agree."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from provisioner.lab.ontap.array import forget
from provisioner.lab.ontap.namespace import mounts_below
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import Rest, rest_to, start_lab

pytestmark = pytest.mark.integration

VOLUMES = "/api/storage/volumes"
CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A root for several starts; whatever a killed lab mounted is let go."""
    yield tmp_path / "lab"
    forget(tmp_path / "lab")


class Process:
    """The lab in a process of its own, which can be killed."""

    def __init__(self, root: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "provisioner.lab.ontap", "--root", str(root)]
        self.process = subprocess.Popen(
            [*command, *arguments],
            cwd=CHECKOUT,
            env={**os.environ, "LAB_ONTAP_PASSWORD": "secret"},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.ready: dict[str, Any] = json.loads(self.process.stdout.readline())
        self.rest = self._client(self.ready)
        self.far = self._client(self.ready.get("peer", self.ready))

    def _client(self, ready: dict[str, Any]) -> Rest:
        lab = OntapLab(OntapConfig(Path(ready["mount_root"])))
        lab.port, lab.ca_file = ready["port"], Path(ready["ca_file"])
        return rest_to(lab)

    def end(self, number: int) -> int:
        """Send the signal and return how the process ended; safe to repeat."""
        for rest in (self.rest, self.far):
            rest.session.close()
        self.process.send_signal(number)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.process.wait(20)


Starter = Callable[..., Process]


@pytest.fixture
def start_process(root: Path) -> Iterator[Starter]:
    """Start labs in processes; none outlives its test."""
    started: list[Process] = []

    def start(*arguments: str) -> Process:
        started.append(Process(root, *arguments))
        return started[-1]

    yield start
    for process in started:
        process.end(signal.SIGKILL)


def names(rest: Rest) -> list[str]:
    return [row["name"] for row in rest.get(VOLUMES, order_by="name")["records"]]


def check_agreement(lab: OntapLab, rest: Rest) -> None:
    """Every volume has its tree and its junction, and there are no others."""
    rows = rest.get(VOLUMES, fields="nas.path")["records"]
    trees = {path.name for path in (lab.array.root / "data" / "volumes").iterdir()}
    assert trees == {row["uuid"] for row in rows}
    junctions = {row.get("nas", {}).get("path") for row in rows} - {None, "/"}
    assert {f"/{path.name}" for path in lab.mount_root.iterdir()} == junctions
    assert rest.get("/api/cluster/jobs", state="running|queued")["num_records"] == 0


def test_a_second_lab_in_the_same_place_says_so_in_a_sentence(root: Path) -> None:
    with start_lab(root):
        second = subprocess.run(
            [sys.executable, "-m", "provisioner.lab.ontap", "--root", str(root)],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=60,
        )

    assert second.returncode == 1
    assert second.stdout == ""
    assert second.stderr == (
        f"Another lab uses {root}. Stop that one first, or choose another directory.\n"
    )


def test_a_second_start_has_everything(root: Path) -> None:
    with start_lab(root) as lab:
        rest = rest_to(lab)
        template = rest.volume("t", nas={"path": "/t"})
        (lab.mount_root / "t" / "inner").mkdir()
        rest.volume("nested", nas={"path": "/t/inner/n"})
        (lab.mount_root / "t" / "inner" / "n" / "file").write_text("x")
        rest.snapshot(template, "s")
        rest.session.close()
    assert mounts_below(root) == []
    with start_lab(root) as lab:
        rest = rest_to(lab)
        assert names(rest) == ["nested", "svm_dev_root", "t"]
        assert (lab.mount_root / "t" / "inner" / "n" / "file").read_text() == "x"
        assert rest.get(f"{VOLUMES}/{template}/snapshots")["num_records"] == 1
        assert rest.get("/api/cluster")["uuid"] == lab.array.identity("cluster")
        rest.session.close()


def test_one_lab_at_a_time_uses_a_root(root: Path) -> None:
    with start_lab(root), pytest.raises(BlockingIOError):
        start_lab(root)


def test_a_taken_port_is_told(root: Path, tmp_path: Path) -> None:
    with start_lab(root) as lab:
        other = OntapConfig(tmp_path / "other", port=lab.port)
        with pytest.raises(OSError, match=str(lab.port)):
            OntapLab(other).start()
        assert mounts_below(tmp_path / "other") == []


def test_sigterm_stops_cleanly(root: Path, start_process: Starter) -> None:
    process = start_process()
    assert set(process.ready) >= {
        *("host", "port", "user", "password", "ca_file", "svm", "aggregate"),
        *("mount_root", "copy_method", "junction_method"),
    }
    process.rest.volume("v", nas={"path": "/v"})
    assert process.end(signal.SIGTERM) == 0
    assert mounts_below(root) == []


def test_the_made_up_password_is_private_and_stays(root: Path) -> None:
    with OntapLab(OntapConfig(root)) as lab:
        password = lab.password
    assert (root / "password").stat().st_mode & 0o777 == 0o600
    assert password not in repr(lab.config)
    with OntapLab(OntapConfig(root)) as lab:
        assert lab.password == password


@pytest.mark.parametrize("acknowledged", [1, 7, 20])
def test_kill_9_loses_no_acknowledged_write(
    root: Path, start_process: Starter, acknowledged: int
) -> None:
    process = start_process()
    process.rest.volume("t", nas={"path": "/t"})
    (Path(process.ready["mount_root"]) / "t" / "file").write_text("x" * 100_000)
    promised = ["t"]
    for number in range(acknowledged):
        body = {
            "name": f"c{number}",
            "svm.name": "svm_dev",
            "clone": {"is_flexclone": True, "parent_volume": {"name": "t"}},
            "nas.path": f"/c{number}",
        }
        assert process.rest("POST", VOLUMES, body).status_code == 202
        promised.append(f"c{number}")
    process.end(signal.SIGKILL)
    with start_lab(root) as lab:
        rest = rest_to(lab)
        for job in rest.get("/api/cluster/jobs")["records"]:
            assert rest.job(job["uuid"])["state"] == "success"
        assert names(rest) == sorted([*promised, "svm_dev_root"])
        for name in promised:
            assert (lab.mount_root / name / "file").read_text() == "x" * 100_000
        check_agreement(lab, rest)
        rest.session.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="symlinks are never away")
def test_whoever_works_in_a_volume_notices_no_kill_9(
    root: Path, start_process: Starter
) -> None:
    """Nobody finds an empty directory where a junction is, and writes into that."""
    process = start_process()
    process.rest.volume("t", nas={"path": "/t"})
    process.rest.volume("nested", nas={"path": "/t/n"})
    before = mount_ids(root)
    process.end(signal.SIGKILL)

    start_process()

    assert len(before) == 3
    assert mount_ids(root) == before


def mount_ids(root: Path) -> dict[str, str]:
    """Return {where a volume is: the kernel's number of that very mount}."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    rows = [line.split() for line in lines]
    mounts = {row[4]: row[0] for row in rows if row[4].startswith(f"{root}/")}
    return {at: number for at, number in mounts.items() if ".snapshot" not in at}


def test_kill_9_during_deletion_leaves_nothing(
    root: Path, start_process: Starter
) -> None:
    process = start_process()
    uuids = [process.rest.volume(f"v{n}", nas={"path": f"/v{n}"}) for n in range(6)]
    for uuid in uuids:
        assert process.rest("DELETE", f"{VOLUMES}/{uuid}").status_code == 202
    process.end(signal.SIGKILL)
    with start_lab(root) as lab:
        rest = rest_to(lab)
        for job in rest.get("/api/cluster/jobs")["records"]:
            assert rest.job(job["uuid"])["state"] == "success"
        assert names(rest) == ["svm_dev_root"]
        check_agreement(lab, rest)
        rest.session.close()


def test_forget_removes_what_a_killed_lab_left(
    root: Path, start_process: Starter
) -> None:
    process = start_process()
    process.rest.volume("v", nas={"path": "/v"})
    with pytest.raises(BlockingIOError):
        forget(root)
    process.end(signal.SIGKILL)
    forget(root)
    assert not root.exists()
    assert mounts_below(root) == []


def test_hanging_jobs_do_not_hold_up_the_end(root: Path) -> None:
    with start_lab(root) as lab:
        rest = rest_to(lab)
        rules = [{"method": "POST", "job_hang_seconds": 100}]
        assert rest("PUT", "/lab/faults", {"rules": rules}).ok
        body = {
            "name": "v",
            "svm.name": "svm_dev",
            "aggregates": [{"name": "aggr1"}],
            "guarantee.type": "none",
        }
        assert rest("POST", VOLUMES, body).status_code == 202
        rest.session.close()
    with pytest.raises(requests.ConnectionError):
        rest("GET", "/api/cluster")


def test_forget_removes_a_peer_inside(root: Path, start_process: Starter) -> None:
    process = start_process("--peer-root", str(root / "peer"))
    process.far.volume("v", svm={"name": "svm_dr"}, nas={"path": "/v"})
    process.end(signal.SIGKILL)
    forget(root)
    assert not root.exists()
    assert mounts_below(root) == []


@pytest.mark.parametrize("delay_seconds", [0.0, 0.03, 0.1])
def test_kill_9_during_a_transfer_loses_nothing(
    root: Path, start_process: Starter, delay_seconds: float
) -> None:
    process = start_process()
    template = process.rest.volume("t", nas={"path": "/t"})
    inside = Path(process.ready["mount_root"]) / "t"
    for number in range(500):
        (inside / f"f{number}").write_text(str(number))
    process.rest.snapshot(template, "s1")
    copy = process.rest.volume("dst", type="dp")
    path = "/api/snapmirror/relationships"
    ends = {"source.path": "svm_dev:t", "destination.path": "svm_dev:dst"}
    policy = {"policy.name": "MirrorAllSnapshots"}
    process.rest.done("POST", path, {**ends, **policy})
    one = f"{path}/{process.rest.get(path)['records'][0]['uuid']}"
    assert process.rest("POST", f"{one}/transfers", {}).status_code == 201
    time.sleep(delay_seconds)
    process.end(signal.SIGKILL)
    with start_lab(root) as lab:
        rest = rest_to(lab)
        for job in rest.get("/api/cluster/jobs")["records"]:
            assert rest.job(job["uuid"])["state"] == "success"
        assert rest.get(one)["state"] == "snapmirrored"
        found = rest.get(f"{VOLUMES}/{copy}/snapshots")["records"]
        assert "s1" in [snapshot["name"] for snapshot in found]
        files = lab.array.root / "data" / "volumes" / copy
        assert {path.name for path in files.iterdir()} == {
            f"f{number}" for number in range(500)
        }
        trees = {path.name for path in (lab.array.root / "data/snapshots").iterdir()}
        everything = rest.get(f"{VOLUMES}/*/snapshots")["records"]
        assert trees == {snapshot["uuid"] for snapshot in everything}
        check_agreement(lab, rest)
        rest.session.close()


@pytest.mark.parametrize("delay_seconds", [0.0, 0.05, 0.2])
def test_kill_9_of_two_clusters_during_a_transfer(
    root: Path, start_process: Starter, delay_seconds: float
) -> None:
    """Each has its own state; the relationship goes on between them."""
    process = start_process("--peer-root", str(root / "peer"))
    template = process.rest.volume("t", nas={"path": "/t"})
    inside = Path(process.ready["mount_root"]) / "t"
    for number in range(500):
        (inside / f"f{number}").write_text(str(number))
    process.rest.snapshot(template, "s1")
    path = "/api/snapmirror/relationships"
    body = {
        "source": {"path": "svm_dev:t", "cluster": {"name": "lab"}},
        "destination": {"path": "svm_dr:t_dst"},
        "create_destination": {"enabled": True},
        "policy": {"name": "MirrorAllSnapshots"},
        "state": "snapmirrored",
    }
    job = process.far.done("POST", path, body)
    assert job["state"] == "success", job
    key = process.far.get(path)["records"][0]["uuid"]
    time.sleep(delay_seconds)
    process.end(signal.SIGKILL)

    again = start_process("--peer-root", str(root / "peer"))
    here, far = again.rest, again.far
    deadline = time.monotonic() + 60
    while (row := far.get(f"{path}/{key}"))["state"] != "snapmirrored":
        assert time.monotonic() < deadline, row
        time.sleep(0.05)
    copy = far.get(VOLUMES, name="t_dst")["records"][0]["uuid"]
    found = far.get(f"{VOLUMES}/{copy}/snapshots")["records"]
    assert "s1" in [snapshot["name"] for snapshot in found]
    files = root / "peer" / "data" / "volumes" / copy
    assert {path.name for path in files.iterdir()} == {
        f"f{number}" for number in range(500)
    }
    for rest, where in ((here, root), (far, root / "peer")):
        everything = rest.get(f"{VOLUMES}/*/snapshots")["records"]
        trees = {path.name for path in (where / "data" / "snapshots").iterdir()}
        assert trees == {snapshot["uuid"] for snapshot in everything}
        assert rest.get("/api/cluster/jobs", state="!success")["num_records"] == 0
    known = here.get(path, list_destinations_only="true")["records"]
    assert [row["uuid"] for row in known] == [key]
    own = here.get(f"{VOLUMES}/{template}/snapshots", fields="owners")["records"]
    assert [row.get("owners") for row in own if row["name"] != "s1"] == [["snapmirror"]]
    # What was replicated can be cloned there, and the next transfer goes on.
    clone = {
        "is_flexclone": True,
        "parent_volume": {"name": "t_dst"},
        "parent_snapshot": {"name": "s1"},
    }
    svm = {"name": "svm_dr"}
    far.clone("c", "t_dst", svm=svm, clone=clone, nas={"path": "/c"})
    mounted = Path(again.ready["peer"]["mount_root"]) / "c"
    assert len(list(mounted.glob("f*"))) == 500
    assert far("POST", f"{path}/{key}/transfers", {}).status_code == 201
    again.end(signal.SIGTERM)
