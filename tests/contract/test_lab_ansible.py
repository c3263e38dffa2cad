"""NetApp's Ansible collection finds nothing to change in a mirror of ours: itself, run.

`test_lab_ansible_requests` has what its other modules send. Ansible is installed once
into an environment of its own below ``VAR_DIR``; where no package index can be reached,
the test is skipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fasteners
import pytest
from django.conf import settings

from provisioner.lab.ontap import records
from provisioner.lib import clocks
from provisioner.mirrors.actions import mirror_create
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.sweeps import check_all
from tests.support.mirrored_labs import End
from tests.support.mirrors import MirrorScene

REQUIREMENTS = Path(__file__).with_name("ansible.txt")
COLLECTION = "ansible==12.3.0"  # has netapp.ontap 23.2.0
INSTALL_SECONDS = 500

pytestmark = [
    pytest.mark.integration,  # needs a package index, and minutes without a cache
    pytest.mark.timeout(INSTALL_SECONDS + 120),
]


@dataclass(frozen=True)
class Recap:
    """What a play did: `ok` tasks, those that `changed` something, and that failed."""

    ok: int
    changed: int
    failed: int


@dataclass(frozen=True)
class Ansible:
    """Runs modules of the collection against one cluster of the lab."""

    home: Path
    directory: Path

    def play(self, end: End, tasks: list[dict[str, Any]], *options: str) -> Recap:
        """Run tasks, each of one module with its parameters; return what they did."""
        lab = end.lab
        signs_in = {
            "hostname": "127.0.0.1",
            "http_port": lab.port,
            "username": lab.config.user,
            "password": lab.config.password,
            "https": True,
            "use_rest": "always",
        }
        play = {
            "hosts": "localhost",
            "connection": "local",
            "gather_facts": False,
            "tasks": [
                {f"netapp.ontap.{name}": {**parameters, **signs_in}}
                for task in tasks
                for name, parameters in task.items()
            ],
        }
        file = self.directory / "play.json"
        file.write_text(json.dumps([play]))
        python = self.home / "bin" / "python"
        done = subprocess.run(
            [
                *(str(python), "-m", "ansible", "playbook", "-i", "localhost,"),
                *("-e", f"ansible_python_interpreter={python}", *options, str(file)),
            ],
            env={
                "HOME": str(self.directory),
                "PATH": os.environ["PATH"],
                "LC_ALL": "C.UTF-8",
                "ANSIBLE_COLLECTIONS_PATH": str(self.home / "collections"),
                "ANSIBLE_LOCAL_TEMP": str(self.directory / "local"),
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_REMOTE_TEMP": str(self.directory / "remote"),
                "REQUESTS_CA_BUNDLE": str(lab.ca_file),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        recap = done.stdout.rpartition("PLAY RECAP")[2]
        words = dict(word.split("=") for word in recap.split() if "=" in word)
        assert words, done.stdout + done.stderr
        assert words["failed"] == "0", done.stdout
        return Recap(*(int(words[name]) for name in ("ok", "changed", "failed")))


@pytest.fixture
def ansible(tmp_path: Path) -> Ansible:
    digest = hashlib.sha256(REQUIREMENTS.read_bytes() + COLLECTION.encode())
    home = Path(settings.VAR_DIR) / f"ansible-{digest.hexdigest()[:12]}"
    ready = home / "ready"
    home.parent.mkdir(parents=True, exist_ok=True)
    with fasteners.InterProcessLock(f"{home}.lock"):
        if not ready.exists():
            venv.create(home, clear=True)
            pip = [sys.executable, "-m", "pip", "--python", str(home / "bin/python")]
            quick = ["-q", "--no-deps", "--disable-pip-version-check"]
            _run([*pip, "install", "--no-compile", *quick, "-r", str(REQUIREMENTS)])
            with tempfile.TemporaryDirectory() as there:
                _run([*pip, "download", *quick, "-d", there, COLLECTION])
                [wheel] = Path(there).glob("*.whl")
                with zipfile.ZipFile(wheel) as archive:
                    archive.extractall(
                        home / "collections",
                        [
                            name
                            for name in archive.namelist()
                            if name.startswith("ansible_collections/netapp/ontap/")
                        ],
                    )
            ready.touch()
    return Ansible(home, tmp_path)


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"Ansible cannot be installed: {done.stderr[-300:]}")


def test_ansible_has_nothing_to_change_in_a_mirror(
    mirror_scene: MirrorScene, ansible: Ansible
) -> None:
    scene = mirror_scene
    mirror = scene.settled(
        mirror_create(by=scene.by, template=scene.template, site=scene.site)
    )
    assert mirror.state == Mirror.State.READY, mirror.status_message
    there, home = scene.labs.destination, scene.labs.source
    before = there.gateway.get_relationship(mirror.relationship_uuid)
    at_home = f"{home.lab.config.svm}:{scene.template.volume_name}"
    relationship = {
        "source_endpoint": {"path": at_home, "cluster": home.lab.config.cluster},
        "destination_endpoint": {"path": mirror.volume_path},
        "policy": mirror.policy_name,
        "update": False,
    }
    tasks: list[dict[str, Any]] = [
        {
            "na_ontap_vserver_peer": {
                "vserver": there.lab.config.svm,
                "peer_vserver": home.lab.config.svm,
                "peer_cluster": home.lab.config.cluster,
                "applications": ["snapmirror"],
            }
        },
        {
            "na_ontap_snapmirror_policy": {
                "vserver": there.lab.config.svm,
                "policy_name": mirror.policy_name,
                "policy_type": "vault",
                "snapmirror_label": ["cloneyard"],
                "keep": [mirror.keep],
            }
        },
        {"na_ontap_snapmirror": relationship},
    ]

    checked = ansible.play(there, tasks, "--check")
    done = ansible.play(there, tasks)

    assert checked == done == Recap(ok=3, changed=0, failed=0)
    after = there.gateway.get_relationship(mirror.relationship_uuid)
    assert after == before
    assert [row.state for row in scene.labs.rows(records.Transfer)] == ["success"]
    # What it does change is seen.
    broken = {**relationship, "relationship_state": "broken"}
    assert ansible.play(there, [{"na_ontap_snapmirror": broken}]).changed == 1
    check_all(now=clocks.database_now())
    mirror.refresh_from_db()
    assert "was broken off" in mirror.trouble
    assert ansible.play(there, [{"na_ontap_snapmirror": relationship}]).changed == 1
    check_all(now=clocks.database_now())
    mirror.refresh_from_db()
    assert mirror.trouble == ""
