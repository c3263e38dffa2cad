"""NetApp's DataOps Toolkit drives the lab's ONTAP: its own command line, unmodified.

The toolkit is installed once into an environment of its own below ``VAR_DIR``; where
no package index can be reached, the tests are skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import sysconfig
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import fasteners
import pytest
from django.conf import settings

from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import MirrorVolumeSpec, OntapAccount
from provisioner.lab.ontap.server import OntapConfig, OntapLab
from tests.support.ontap_rest import Rest, rest_to

REQUIREMENTS = Path(__file__).with_name("dataops_toolkit.txt")
INSTALL_SECONDS = 400

# The toolkit takes its credentials from the system's keyring; this one is a file.
KEYRING = """
import json, os
from keyring.backend import KeyringBackend

class FileKeyring(KeyringBackend):
    priority = 1

    def get_password(self, service, username):
        with open(os.environ["TEST_KEYRING_FILE"]) as file:
            return json.load(file).get(service, {}).get(username)

    def set_password(self, service, username, password):
        raise NotImplementedError
"""

# Its imports take seconds and are the same for each command, so one process has them
# all; each command runs in a fork of it, as a program of its own.
WARM = """
import json, os, runpy, sys
import netapp_dataops.traditional

for line in sys.stdin:
    command, output = json.loads(line)
    pid = os.fork()
    if pid == 0:
        file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, 1)
        os.dup2(file, 2)
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""

pytestmark = [
    pytest.mark.integration,  # needs a package index, and minutes without a cache
    pytest.mark.timeout(INSTALL_SECONDS + 120),
]


@pytest.fixture(scope="module")
def toolkit_python() -> Path:
    """The interpreter of the toolkit's environment, made when it is not there."""
    digest = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:12]
    home = Path(settings.VAR_DIR) / f"dataops-toolkit-{digest}"
    ready = home / "ready"
    home.parent.mkdir(parents=True, exist_ok=True)
    with fasteners.InterProcessLock(f"{home}.lock"):
        if not ready.exists():
            venv.create(home, clear=True)
            pip = [sys.executable, "-m", "pip", "--python", str(home / "bin/python")]
            quick = ["-q", "--no-deps", "--no-compile", "--disable-pip-version-check"]
            install = [*pip, "install", *quick, "-r", str(REQUIREMENTS)]
            done = subprocess.run(
                install,
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS,
                check=False,
            )
            if done.returncode != 0:
                pytest.skip(f"the toolkit cannot be installed: {done.stderr[-300:]}")
            # What is missing there, netapp-ontap, is the application's.
            (packages,) = home.glob("lib/*/site-packages")
            (packages / "ours.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
            ready.touch()
    return home / "bin" / "python"


@dataclass
class Toolkit:
    """The command line, configured for one lab."""

    program: Path
    warm: subprocess.Popen[str]
    output: Path
    lab: OntapLab
    rest: Rest

    def __call__(self, *arguments: str) -> str:
        assert self.warm.stdin is not None
        assert self.warm.stdout is not None
        order = [[str(self.program), *arguments], str(self.output)]
        self.warm.stdin.write(json.dumps(order) + "\n")
        self.warm.stdin.flush()
        code = self.warm.stdout.readline().strip()
        output = self.output.read_text()
        assert code == "0", output
        return output


@pytest.fixture(scope="module")
def toolkit(
    toolkit_python: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Toolkit]:
    home = tmp_path_factory.mktemp("toolkit")
    config = OntapConfig(home / "lab", password="secret", more_svms=("svm_dr",))
    with OntapLab(config) as lab:
        (home / ".netapp_dataops").mkdir()
        document = {
            "connectionType": "ONTAP",
            "hostname": f"127.0.0.1:{lab.port}",
            "svm": "svm_dev",
            "dataLif": "127.0.0.1",
            "defaultVolumeType": "flexvol",
            "defaultExportPolicy": "default",
            "defaultSnapshotPolicy": "none",
            "defaultUnixUID": "1001",
            "defaultUnixGID": "1001",
            "defaultUnixPermissions": "0777",
            "defaultAggregate": "aggr1",
        }
        (home / ".netapp_dataops" / "config.json").write_text(json.dumps(document))
        credentials = {
            "netapp:dataops:ontap": {"username": "admin", "password": "secret"}
        }
        (home / "keyring.json").write_text(json.dumps(credentials))
        (home / "file_keyring.py").write_text(KEYRING)
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(home),
            "PYTHON_KEYRING_BACKEND": "file_keyring.FileKeyring",
            "TEST_KEYRING_FILE": str(home / "keyring.json"),
            "REQUESTS_CA_BUNDLE": str(lab.ca_file),
        }
        rest = rest_to(lab)
        with subprocess.Popen(
            [toolkit_python, "-c", WARM],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as warm:
            program = toolkit_python.with_name("netapp_dataops_cli.py")
            yield Toolkit(program, warm, home / "output", lab, rest)
        rest.session.close()


def test_from_create_to_delete(toolkit: Toolkit) -> None:
    root = toolkit.lab.mount_root
    toolkit("create", "volume", "--name=gold", "--size=1GB", "--aggregate=aggr1")
    assert (root / "gold").stat().st_mode & 0o777 == 0o777
    (root / "gold" / "file").write_text("then")
    toolkit("create", "snapshot", "--volume=gold", "--name=snap1")
    assert "snap1" in toolkit("list", "snapshots", "--volume=gold")

    toolkit(
        "clone",
        "volume",
        "--name=plain",
        "--source-volume=gold",
        "--source-snapshot=snap1",
        "--uid=1002",
        "--gid=1003",
        "--svm-dr-unprotect",
    )
    assert (root / "plain" / "file").read_text() == "then"
    if os.geteuid() == 0:
        assert (root / "plain" / "file").stat().st_uid == 1002

    toolkit(
        "clone",
        "volume",
        "--name=own",
        "--source-volume=gold",
        "--source-snapshot=snap*",
        "--export-hosts=10.5.5.3:10.6.4.0/24",
        "--split",
    )
    own = toolkit.rest.get("/api/storage/volumes", name="own", fields="nas,clone")
    policy = own["records"][0]["nas"]["export_policy"]["name"]
    assert policy == "netapp_dataops_own"
    wait_until_split(toolkit.rest, own["records"][0]["uuid"])

    listed = toolkit("list", "volumes", "--include-space-usage-details")
    for name in ("gold", "plain", "own"):
        assert name in listed

    (root / "gold" / "file").write_text("now")
    toolkit("restore", "snapshot", "--volume=gold", "--name=snap1", "--force")
    assert (root / "gold" / "file").read_text() == "then"

    for name in ("plain", "own"):
        toolkit("delete", "volume", f"--name={name}", "--force")
    toolkit("delete", "snapshot", "--volume=gold", "--name=snap1")
    toolkit("delete", "volume", "--name=gold", "--force", "--delete-non-clone")
    left = toolkit.rest.get("/api/storage/volumes", name="gold|plain|own")
    assert left["num_records"] == 0


def test_snapmirror(toolkit: Toolkit) -> None:
    rest, lab = toolkit.rest, toolkit.lab
    rest.volume("src", nas={"path": "/src"})
    (lab.mount_root / "src" / "file").write_text("x")
    toolkit(
        "create",
        "volume",
        "--svm=svm_dr",
        "--name=dst",
        "--size=1GB",
        "--aggregate=aggr1",
        "--dp",
    )
    toolkit(
        "create",
        "snapmirror-relationship",
        "--source-svm=svm_dev",
        "--source-vol=src",
        "--target-svm=svm_dr",
        "--target-vol=dst",
        "--schedule=hourly",
        "--policy=MirrorAllSnapshots",
        "--action=initialize",
    )
    row = rest.get("/api/snapmirror/relationships", fields="*")["records"][0]
    assert row["policy"]["name"] == "MirrorAllSnapshots"
    rest.snapshot(row_volume(rest, "src"), "s1")
    wait_until_idle(rest)
    toolkit("sync", "snapmirror-relationship", "--svm=svm_dr", "--name=dst")
    wait_until_idle(rest)
    arrived = rest.get(f"/api/storage/volumes/{row_volume(rest, 'dst')}/snapshots")
    assert "s1" in [snapshot["name"] for snapshot in arrived["records"]]
    assert "svm_dr" in toolkit("list", "snapmirror-relationships")


def test_a_mirror_of_ours_is_seen_and_synced(toolkit: Toolkit) -> None:
    rest = toolkit.rest
    rest.snapshot(rest.volume("ours"), "c1.b1")
    there = OntapGateway(
        OntapAccount(
            host="127.0.0.1",
            port=toolkit.lab.port,
            user="admin",
            password="secret",
            ca_file=str(toolkit.lab.ca_file),
            svm="svm_dr",
            timeout_seconds=10,
        )
    )
    there.create_mirror_policy("cloneyard-keep-10", label="cloneyard", keep=10)
    volume = there.create_mirror_volume(
        MirrorVolumeSpec(
            name="ours_m",
            aggregate="aggr1",
            size_bytes=100 * 2**20,
            comment="ours",
            export_policy="default",
        )
    )
    made = there.create_relationship(
        "ours_m", source_path="svm_dev:ours", policy="cloneyard-keep-10"
    )
    there.start_transfer(made.uuid, snapshot="c1.b1")
    wait_until(
        lambda: there.find_snapshot_version(volume.uuid, name="c1.b1"),
        limit_seconds=20,
    )
    before = there.get_relationship(made.uuid)

    listed = toolkit("list", "snapmirror-relationships")
    toolkit("sync", "snapmirror-relationship", "--svm=svm_dr", "--name=ours_m")

    assert "ours_m" in listed
    after = there.get_relationship(made.uuid)
    assert (after.policy, after.state) == (before.policy, "snapmirrored")
    assert [each.name for each in there.list_snapshots(volume.uuid)] == ["c1.b1"]
    there.close()


def row_volume(rest: Rest, name: str) -> str:
    uuid: str = rest.get("/api/storage/volumes", name=name)["records"][0]["uuid"]
    return uuid


def wait_until_split(rest: Rest, uuid: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        row = rest.get(f"/api/storage/volumes/{uuid}", fields="clone")
        if not row["clone"]["is_flexclone"]:
            return
        time.sleep(0.1)
    raise AssertionError("the split has no end")


def wait_until_idle(rest: Rest) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        row = rest.get("/api/snapmirror/relationships", fields="transfer")
        if row["records"][0]["transfer"]["state"] == "success":
            return
        time.sleep(0.1)
    raise AssertionError("the transfer has no end")
