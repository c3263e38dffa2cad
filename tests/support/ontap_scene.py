"""Where the ONTAP suite runs: on the lab, and on a real system when one is given.

A real system is named by ONTAP_TEST_HOST, ONTAP_TEST_PORT, ONTAP_TEST_USER,
ONTAP_TEST_PASSWORD, ONTAP_TEST_CA_FILE, ONTAP_TEST_SVM and ONTAP_TEST_AGGREGATE. The
suite makes small volumes and export policies there and removes them again; it finds
its own by their comment and name.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import pytest_socket
import requests

from provisioner.gateways.ontap.connection import OntapConnection
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import (
    CloneSpec,
    ExportPolicy,
    ExportRule,
    OntapAccount,
    Volume,
    VolumeSnapshot,
    VolumeSpec,
)
from provisioner.lab.ontap.server import OntapConfig, OntapLab

REAL_HOST = os.environ.get("ONTAP_TEST_HOST", "")
# An account of the SVM, with the least rights that docs/security.md asks for.
LEAST_USER = "leastadmin"
CLUSTER_TARGETS = [
    "lab",
    *([pytest.param("real", marks=pytest.mark.real)] if REAL_HOST else []),
]
TARGETS = [*CLUSTER_TARGETS, "lab with least rights"]

SIZE_BYTES = 64 << 20
UID, GID = 1001, 1002


@dataclass(frozen=True, kw_only=True)
class OntapTarget:
    account: OntapAccount
    aggregate: str


@dataclass
class OntapScene:
    """One test's view of an ONTAP; what it makes is named and tagged as its own."""

    target: OntapTarget
    gateway: OntapGateway
    tag: str
    jobs: list[str] = field(default_factory=list)
    policies: list[ExportPolicy] = field(default_factory=list)

    @property
    def recording(self) -> OntapGateway:
        """The gateway, which records ONTAP's jobs in `jobs`."""
        return self.gateway.recording_jobs(self.jobs.append)

    def name(self, suffix: str) -> str:
        return f"cytest_{self.tag}_{suffix}"

    def comment(self, suffix: str = "") -> str:
        return f"cloneyard-test:{self.tag}:{suffix}"

    def volume_spec(self, suffix: str = "tmpl", **changes: Any) -> VolumeSpec:
        values: dict[str, Any] = {
            "name": self.name(suffix),
            "aggregate": self.target.aggregate,
            "size_bytes": SIZE_BYTES,
            "comment": self.comment(suffix),
            "export_policy": "default",
            "uid": UID,
            "gid": GID,
        }
        return VolumeSpec(**{**values, **changes})

    def clone_spec(self, suffix: str = "ws", **changes: Any) -> CloneSpec:
        values: dict[str, Any] = {
            "name": self.name(suffix),
            "parent_volume": self.name("tmpl"),
            "parent_snapshot": "cl_7",
            "comment": self.comment(suffix),
            "uid": UID,
            "gid": GID,
        }
        return CloneSpec(**{**values, **changes})

    def make_volume(self, suffix: str = "tmpl") -> Volume:
        return self.gateway.create_volume(self.volume_spec(suffix))

    def make_snapshot(self, volume: Volume, name: str = "cl_7") -> VolumeSnapshot:
        return self.gateway.create_snapshot(volume.uuid, name=name, comment="")

    def make_clone(self, suffix: str = "ws") -> Volume:
        """Return a clone of snapshot cl_7 of volume tmpl, which are made first."""
        if self.gateway.find_volume(self.name("tmpl")) is None:
            self.make_snapshot(self.make_volume())
        return self.gateway.create_clone(self.clone_spec(suffix))

    def make_policy(self, suffix: str = "policy", *rules: ExportRule) -> ExportPolicy:
        policy = self.gateway.create_export_policy(self.name(suffix), rules=rules)
        self.policies.append(policy)
        return policy

    def clean(self) -> None:
        """Remove what the test made: clones before their parents."""
        left = self.gateway.list_volumes(comment_prefix=self.comment())
        for volume in sorted(left, key=lambda each: each.clone_parent is None):
            self.gateway.delete_volume(volume.uuid, force=True)
        connection = OntapConnection(self.target.account, job_limit_seconds=60)
        for policy in self.policies:
            connection.write_at_once(
                "DELETE",
                f"/protocols/nfs/export-policies/{policy.id}",
                body={},
            )
        connection.close()


@dataclass(frozen=True, kw_only=True)
class LabControl:
    """Changes how the running lab behaves, over its own HTTPS."""

    account: OntapAccount

    def set_faults(self, *rules: dict[str, Any]) -> None:
        self._ask("PUT", "faults", {"rules": list(rules)})

    def settings(self) -> dict[str, Any]:
        return self._ask("GET", "settings")

    def set_settings(self, **settings: Any) -> None:
        self._ask("PUT", "settings", settings)

    def _ask(
        self, method: str, what: str, document: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        with requests.Session() as session:
            session.trust_env = False
            response = session.request(
                method,
                f"https://{self.account.host}:{self.account.port}/lab/{what}",
                json=document,
                auth=(self.account.user, self.account.password),
                verify=self.account.ca_file,
                timeout=5,
            )
        assert response.ok, response.text
        answer: dict[str, Any] = response.json()
        return answer


@pytest.fixture(scope="session")
def ontap_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OntapTarget]:
    config = OntapConfig(root=tmp_path_factory.mktemp("ontap"), password="lab secret")
    lab = OntapLab(config)
    lab.start()
    account = OntapAccount(
        host="127.0.0.1",
        port=lab.port,
        user=config.user,
        password="lab secret",
        ca_file=str(lab.ca_file),
        svm=config.svm,
        timeout_seconds=10,
    )
    try:
        yield OntapTarget(account=account, aggregate=config.aggregate)
    finally:
        lab.stop()


@pytest.fixture(params=TARGETS)
def ontap_target(request: pytest.FixtureRequest) -> OntapTarget:
    return _target(request)


def _with_least_rights(target: OntapTarget) -> OntapTarget:
    return replace(target, account=replace(target.account, user=LEAST_USER))


def _target(request: pytest.FixtureRequest) -> OntapTarget:
    if request.param.startswith("lab"):
        target: OntapTarget = request.getfixturevalue("ontap_lab")
        return target if request.param == "lab" else _with_least_rights(target)
    pytest_socket.enable_socket()
    pytest_socket.socket_allow_hosts(["127.0.0.1", "::1", "localhost", REAL_HOST])
    account = OntapAccount(
        host=REAL_HOST,
        port=int(os.environ.get("ONTAP_TEST_PORT", "443")),
        user=os.environ["ONTAP_TEST_USER"],
        password=os.environ["ONTAP_TEST_PASSWORD"],
        ca_file=os.environ.get("ONTAP_TEST_CA_FILE", ""),
        svm=os.environ["ONTAP_TEST_SVM"],
    )
    return OntapTarget(account=account, aggregate=os.environ["ONTAP_TEST_AGGREGATE"])


@pytest.fixture
def ontap(ontap_target: OntapTarget) -> Iterator[OntapScene]:
    yield from _scene(ontap_target)


@pytest.fixture(params=CLUSTER_TARGETS)
def cluster_ontap(request: pytest.FixtureRequest) -> Iterator[OntapScene]:
    """A scene whose account may ask what an account of an SVM may not."""
    yield from _scene(_target(request))


@pytest.fixture
def least_ontap(ontap_lab: OntapTarget) -> Iterator[OntapScene]:
    """A scene of an account of the SVM that has the least rights."""
    yield from _scene(_with_least_rights(ontap_lab))


@pytest.fixture
def lab_ontap(ontap_lab: OntapTarget) -> Iterator[OntapScene]:
    """A scene on the lab alone, where faults can be ordered."""
    yield from _scene(ontap_lab)


@pytest.fixture
def lab_control(lab_ontap: OntapScene) -> Iterator[LabControl]:
    """The lab's switches; back where they were before the scene is cleaned."""
    control = LabControl(account=lab_ontap.target.account)
    before = control.settings()
    yield control
    control.set_faults()
    control.set_settings(**before)


def _scene(target: OntapTarget) -> Iterator[OntapScene]:
    gateway = OntapGateway(target.account)
    scene = OntapScene(target=target, gateway=gateway, tag=uuid.uuid4().hex[:8])
    yield scene
    scene.clean()
    gateway.close()
