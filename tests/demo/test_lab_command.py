"""`manage.py lab`: one JSON line, then service until it is told to stop."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from django.db import connection

from provisioner.accounts.models import User
from provisioner.catalog.models import Template
from provisioner.demo.processes import (
    Child,
    ProcessFailed,
    Starter,
    manage,
    started_anew,
)
from provisioner.sites.models import Site
from tests.support.forkserver import warm
from tests.support.processes import wait_until_ended

pytestmark = pytest.mark.integration

StartLab = Callable[..., Child]
CONNECTED_WITHIN_SECONDS = 180.0


@pytest.fixture
def root() -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="cloneyard-lab-", dir="/var/tmp"))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def lab(root: Path) -> Iterator[Child]:
    child = run_lab(root, (), by=started_anew)
    yield child
    child.stop()


@pytest.fixture(scope="module")
def start() -> Iterator[StartLab]:
    """Run the command in a fork: imports are most of what it takes."""
    with warm({}) as programs:
        yield lambda root, *arguments: run_lab(root, arguments, by=programs)


def run_lab(
    root: Path,
    arguments: tuple[str, ...],
    *,
    by: Starter,
    environment: Mapping[str, str] | None = None,
) -> Child:
    return Child(
        "lab",
        manage(
            *("lab", "--root", str(root / "lab")),
            *("--ontap-port=0", "--perforce-port=0", *arguments),
        ),
        log_dir=root,
        reads_output=environment is None,
        environment=environment,
        start=by,
    )


def children_of(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in listed]


def mounts_below(root: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if f" {root}/" in line]


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_it_says_where_it_is_and_stops_without_a_trace(
    signum: signal.Signals, lab: Child, root: Path
) -> None:
    said = lab.read_json_line(timeout_seconds=60)

    assert set(said) == {"ontap", "perforce"}
    ontap, perforce = said["ontap"], said["perforce"]
    assert {
        *("host", "port", "user", "password", "ca_file"),
        *("svm", "aggregate", "mount_root"),
    } <= set(ontap)
    assert {"port", "user", "password"} <= set(perforce)
    assert Path(ontap["ca_file"]).is_file()
    assert Path(ontap["mount_root"]).is_dir()
    host, port = perforce["port"].rsplit(":", 1)
    places = [(ontap["host"], ontap["port"]), (host, int(port))]
    assert all(answers(*place) for place in places)
    servers = children_of(lab.process.pid)
    assert len(servers) == 2
    pids = [lab.process.pid, *servers]
    argv = b"".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids)
    assert all(one["password"].encode() not in argv for one in said.values())

    os.kill(lab.process.pid, signum)

    assert lab.process.wait(15) == 0
    for server in servers:
        wait_until_ended(server)
    assert not any(answers(*place) for place in places)
    assert mounts_below(root) == []


def test_it_ends_with_a_reason_where_a_server_ends(lab: Child) -> None:
    lab.read_json_line(timeout_seconds=60)

    os.kill(children_of(lab.process.pid)[1], signal.SIGKILL)

    assert lab.process.wait(15) != 0
    assert "lab-perforce ended; see" in lab.log_path.read_text()


def test_a_server_that_cannot_start_says_why(root: Path, start: StartLab) -> None:
    (root / "lab").mkdir()
    (root / "lab" / "perforce").write_text("not a directory\n")
    lab = start(root)

    with pytest.raises(ProcessFailed, match="File exists"):
        lab.read_json_line(timeout_seconds=60)


def test_further_svms_a_second_cluster_and_an_edge_are_asked_for(
    root: Path, start: StartLab
) -> None:
    peer = ("--peer", "--peer-svm=svm_far", "--peer-port=0")
    edge = ("--edge=edge-far", "--edge-port=0")
    lab = start(root, "--more-svm", "svm_qa", *peer, *edge)
    try:
        said = lab.read_json_line(timeout_seconds=60)

        assert set(said) == {"ontap", "perforce", "peer", "edge"}
        host, _, port = said["edge"]["port"].rpartition(":")
        assert answers(host, int(port))
        ontap, far = said["ontap"], said["peer"]
        assert [row["svm"] for row in ontap["more_svms"]] == ["svm_qa"]
        assert Path(ontap["more_svms"][0]["mount_root"]).is_dir()
        assert far["svm"] == "svm_far"
        assert far["port"] != ontap["port"]
        assert far["ca_file"] != ontap["ca_file"]
        session = requests.Session()
        session.trust_env = False
        session.auth = (ontap["user"], ontap["password"])
        peers = session.get(
            f"https://{ontap['host']}:{ontap['port']}/api/svm/peers",
            params={"peer.svm.name": "svm_far", "fields": "svm,state"},
            verify=ontap["ca_file"],
            timeout=10,
        ).json()["records"]
        assert {row["svm"]["name"] for row in peers} == {"svm_dev", "svm_qa"}
        assert {row["state"] for row in peers} == {"peered"}
        session.close()
    finally:
        lab.stop()
    assert mounts_below(root) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--restore", "/no/checkpoint"), "The restore failed: /no/checkpoint"),
        (("--depots", "/no/depots"), "--depots belongs to --restore"),
    ],
)
def test_what_cannot_be_restored_is_refused(
    options: tuple[str, ...], reason: str, root: Path, start: StartLab
) -> None:
    lab = start(root, *options)

    with pytest.raises(ProcessFailed, match=reason):
        lab.read_json_line(timeout_seconds=60)

    assert not (root / "lab" / "perforce" / "db.sqlite3").exists()


def test_a_checkpoint_of_a_server_that_ignores_case_is_warned_of(
    root: Path, start: StartLab
) -> None:
    checkpoint = root / "checkpoint"
    row = "@pv@ 7 @db.user@ @{}@ @x@@x@ @@ 10 20 @x@ @@ 1 @@ 0 0 0 0 0 0 \n"
    checkpoint.write_text(row.format("aa") + row.format("AX"))
    lab = start(root, "--restore", str(checkpoint))
    try:
        said = lab.read_json_line(timeout_seconds=60)
        warned = lab.last_lines()
    finally:
        lab.stop()

    [warning] = said["perforce"]["restore"]["warnings"]
    assert "--ignore-case" in warning
    assert f"Warning: {warning}" in warned


def test_a_server_that_is_there_is_not_restored_over(
    root: Path, start: StartLab
) -> None:
    (root / "lab" / "perforce").mkdir(parents=True)
    (root / "lab" / "perforce" / "db.sqlite3").touch()
    lab = start(root, "--restore", "/any")

    with pytest.raises(ProcessFailed, match="has a Perforce server already"):
        lab.read_json_line(timeout_seconds=60)


def test_servers_take_the_next_port_where_one_is_taken(
    root: Path, start: StartLab
) -> None:
    """By binding it: two labs that start at once get two."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        wanted = (f"--ontap-port={port}", f"--perforce-port={port}")
        labs = [start(root / name, *wanted) for name in ("one", "two")]
        try:
            said = [lab.read_json_line(timeout_seconds=60) for lab in labs]
        finally:
            for lab in labs:
                lab.stop()

    ports = [int(one["ontap"]["port"]) for one in said]
    ports += [int(one["perforce"]["port"].rpartition(":")[2]) for one in said]
    assert len(set(ports)) == 4
    assert all(port < each <= port + 100 for each in ports)
    assert f"ONTAP: port {port} is taken, using {ports[0]}." in labs[0].last_lines()


PASSWORDS = {"ONTAP_PASSWORD": "of the lab's ONTAP", "P4PASSWD": "of-its-Perforce"}


def connecting(root: Path, **settings: str) -> Child:
    """Connect it to the installation of this test."""
    named = connection.settings_dict
    host = quote(str(named["HOST"]), safe="")
    environment = {
        "DATABASE_URL": f"postgres://{named['USER']}@/{named['NAME']}?host={host}",
        "VAR_DIR": str(root / "var"),
        **settings,
    }
    return run_lab(root, ("--connect",), by=started_anew, environment=environment)


def wait_for(lab: Child, sentence: str) -> None:
    ends = time.monotonic() + CONNECTED_WITHIN_SECONDS
    while sentence not in lab.log_path.read_text():
        assert lab.is_running, lab.last_lines()
        assert time.monotonic() < ends, lab.last_lines()
        time.sleep(0.1)


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(400)
def test_it_becomes_the_first_site_once_there_is_an_administrator(
    root: Path, jobs_emptied: None
) -> None:
    lab = connecting(root, **PASSWORDS)
    try:
        wait_for(lab, "Waiting for an administrator: cloneyard-server createsuperuser")
        assert not Site.objects.exists()
        erin: User = User.objects.create_superuser("erin", password="x")
        wait_for(lab, "It is built as soon as a worker serves host.demo.")
    finally:
        lab.stop()

    erin.refresh_from_db()
    assert erin.uid is not None
    assert f"erin owns files as uid {erin.uid}" in lab.log_path.read_text()
    [site], [template] = Site.objects.all(), Template.objects.all()
    assert (site.name, template.name, template.site) == ("demo", "django-db", site)
    # In a container only the lab's own directory can be written.
    assert site.rescue_root == str(root / "lab" / "rescue")
    assert not (root / "var" / "rescue").exists()
    [build] = template.operations.all()
    assert build.requested_by == erin
    assert not any(each in lab.log_path.read_text() for each in PASSWORDS.values())

    again = connecting(root, **PASSWORDS)
    try:
        wait_for(again, "The site demo is connected, with the template django-db.")
    finally:
        again.stop()
    assert [*Site.objects.all()] == [site]
    assert template.operations.get() == build


@pytest.mark.parametrize("missing", PASSWORDS)
@pytest.mark.django_db
def test_without_a_password_for_all_it_connects_to_nothing(
    missing: str, root: Path
) -> None:
    lab = connecting(root, **{**PASSWORDS, missing: ""})

    assert lab.process.wait(60) != 0

    assert "Set ONTAP_PASSWORD and P4PASSWD first" in lab.last_lines()
    assert not (root / "lab" / "perforce").exists()
