"""What the gateway makes of an ONTAP in trouble, which only the lab is on demand."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from provisioner.gateways.errors import (
    AlreadyExists,
    Busy,
    GatewayError,
    InUse,
    LimitReached,
    OutOfSpace,
    Refused,
    Unreachable,
)
from provisioner.gateways.ontap import connection
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import ExportRule
from tests.support.ontap_scene import LabControl, OntapScene

pytestmark = pytest.mark.integration

Act = Callable[[], object]
IsDone = Callable[[], bool]
VOLUMES = "/api/storage/volumes*"


@dataclass(frozen=True)
class Verb:
    """A write on its way: `act` does it, `is_done` sees its effect.

    `repeated` is what a second one raises; None where it is a success.
    """

    method: str
    path: str
    act: Act
    is_done: IsDone
    repeated: type[GatewayError] | None


def create_volume(scene: OntapScene) -> Verb:
    spec = scene.volume_spec()
    return Verb(
        "POST",
        VOLUMES,
        lambda: scene.recording.create_volume(spec),
        lambda: scene.gateway.find_volume(spec.name) is not None,
        AlreadyExists,
    )


def create_clone(scene: OntapScene) -> Verb:
    scene.make_snapshot(scene.make_volume())
    spec = scene.clone_spec()
    return Verb(
        "POST",
        VOLUMES,
        lambda: scene.recording.create_clone(spec),
        lambda: scene.gateway.find_volume(spec.name) is not None,
        AlreadyExists,
    )


def create_snapshot(scene: OntapScene) -> Verb:
    uuid = scene.make_volume().uuid
    return Verb(
        "POST",
        "*/snapshots*",
        lambda: scene.recording.create_snapshot(uuid, name="cl_7", comment=""),
        lambda: scene.gateway.find_snapshot(uuid, name="cl_7") is not None,
        AlreadyExists,
    )


def set_volume_policies(scene: OntapScene) -> Verb:
    uuid = scene.make_clone().uuid
    policy = scene.make_policy().name

    def act() -> None:
        scene.recording.set_volume_policies(uuid, export_policy=policy)

    return Verb(
        "PATCH",
        VOLUMES,
        act,
        lambda: scene.gateway.get_volume(uuid).export_policy == policy,
        None,
    )


def mount_volume(scene: OntapScene) -> Verb:
    volume = scene.make_volume()
    path = f"/{volume.name}"
    return Verb(
        "PATCH",
        VOLUMES,
        lambda: scene.recording.mount_volume(volume.uuid, junction_path=path),
        lambda: scene.gateway.get_volume(volume.uuid).junction_path == path,
        None,
    )


def unmount_volume(scene: OntapScene) -> Verb:
    volume = scene.make_volume()
    scene.gateway.mount_volume(volume.uuid, junction_path=f"/{volume.name}")
    return Verb(
        "PATCH",
        VOLUMES,
        lambda: scene.recording.unmount_volume(volume.uuid),
        lambda: scene.gateway.get_volume(volume.uuid).junction_path == "",
        None,
    )


def delete_volume(scene: OntapScene) -> Verb:
    volume = scene.make_volume()
    return Verb(
        "DELETE",
        VOLUMES,
        lambda: scene.recording.delete_volume(volume.uuid, force=True),
        lambda: scene.gateway.find_volume(volume.name) is None,
        None,
    )


def delete_snapshot(scene: OntapScene) -> Verb:
    volume = scene.make_volume()
    snapshot = scene.make_snapshot(volume)
    return Verb(
        "DELETE",
        "*/snapshots/*",
        lambda: scene.recording.delete_snapshot(
            volume.uuid, snapshot_uuid=snapshot.uuid
        ),
        lambda: scene.gateway.find_snapshot(volume.uuid, name="cl_7") is None,
        None,
    )


JOB_VERBS = (
    create_volume,
    create_clone,
    create_snapshot,
    set_volume_policies,
    mount_volume,
    unmount_volume,
    delete_volume,
    delete_snapshot,
)


def create_export_policy(scene: OntapScene) -> Verb:
    name = scene.name("policy")

    def act() -> None:
        scene.policies.append(scene.gateway.create_export_policy(name, rules=()))

    def is_done() -> bool:
        policy = scene.gateway.find_export_policy(name)
        if policy is not None and policy not in scene.policies:
            scene.policies.append(policy)
        return policy is not None

    return Verb("POST", "*/export-policies*", act, is_done, AlreadyExists)


def set_export_rules(scene: OntapScene) -> Verb:
    policy = scene.make_policy()
    rules = (ExportRule(clients=("10.0.0.0/24",)),)

    def is_done() -> bool:
        found = scene.gateway.find_export_policy(policy.name)
        return found is not None and found.rules == rules

    return Verb(
        "PATCH",
        "*/export-policies/*",
        lambda: scene.gateway.set_export_rules(policy.id, rules=rules),
        is_done,
        None,
    )


@pytest.fixture(params=JOB_VERBS, ids=lambda verb: verb.__name__)
def job_verb(request: pytest.FixtureRequest, lab_ontap: OntapScene) -> Verb:
    """Each write that ONTAP makes in a job."""
    verb: Verb = request.param(lab_ontap)
    return verb


@pytest.fixture(
    params=(*JOB_VERBS, create_export_policy, set_export_rules),
    ids=lambda verb: verb.__name__,
)
def verb(request: pytest.FixtureRequest, lab_ontap: OntapScene) -> Verb:
    """Each write."""
    found: Verb = request.param(lab_ontap)
    return found


@pytest.fixture
def answered_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ONTAP answer each change before its job has ended."""
    monkeypatch.setattr(connection, "RETURN_WITHIN_SECONDS", 0)


def comes_true(claim: IsDone) -> bool:
    return wait_until(lambda: claim() or None, limit_seconds=5) is True


# --- every write


def test_a_lost_reply_is_told_and_the_next_check_decides(
    verb: Verb, lab_control: LabControl
) -> None:
    lab_control.set_faults(
        {
            "method": verb.method,
            "path": verb.path,
            "drop": True,
            "when": "after",
            "times": 1,
        }
    )
    with pytest.raises(Unreachable):
        verb.act()
    assert comes_true(verb.is_done)
    if verb.repeated is None:
        verb.act()
    else:
        with pytest.raises(verb.repeated):
            verb.act()
    assert verb.is_done()


def test_a_request_that_never_arrived_has_done_nothing(
    verb: Verb, lab_control: LabControl
) -> None:
    lab_control.set_faults(
        {"method": verb.method, "path": verb.path, "drop": True, "times": 1}
    )
    with pytest.raises(Unreachable):
        verb.act()
    assert not verb.is_done()
    verb.act()
    assert verb.is_done()


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_ontap_is_asked_again_later(
    status: int, verb: Verb, lab_control: LabControl
) -> None:
    lab_control.set_faults(
        {"method": verb.method, "path": verb.path, "status": status, "times": 1}
    )
    with pytest.raises(Busy):
        verb.act()
    assert not verb.is_done()
    verb.act()
    assert verb.is_done()


# --- writes in an ONTAP job


@pytest.mark.parametrize(
    ("code", "error"), [("917536", Refused), ("524486", Busy), ("8", InUse)]
)
def test_a_failed_job_means_what_its_code_means(
    code: str,
    error: type[GatewayError],
    job_verb: Verb,
    lab_control: LabControl,
) -> None:
    lab_control.set_faults(
        {
            "method": job_verb.method,
            "path": job_verb.path,
            "job_code": code,
            "job_message": "The disk shelf is on fire.",
            "times": 1,
        }
    )
    with pytest.raises(error) as raised:
        job_verb.act()
    assert type(raised.value) is error
    assert raised.value.remote_code == code
    assert "The disk shelf is on fire." in raised.value.sentence
    assert not job_verb.is_done()
    job_verb.act()
    assert job_verb.is_done()


def test_a_job_that_outlasts_the_answer_is_announced_while_it_runs(
    job_verb: Verb,
    answered_at_once: None,
    lab_ontap: OntapScene,
    lab_control: LabControl,
) -> None:
    lab_control.set_faults(
        {
            "method": job_verb.method,
            "path": job_verb.path,
            "job_hang_seconds": 0.3,
            "times": 1,
        }
    )
    started = time.monotonic()
    job_verb.act()
    assert time.monotonic() - started >= 0.3
    assert len(lab_ontap.jobs) == 1
    assert job_verb.is_done()


def test_a_job_that_ontap_forgot_at_once_has_not_failed(
    job_verb: Verb, lab_control: LabControl
) -> None:
    lab_control.set_settings(job_retention_seconds=0)
    job_verb.act()
    assert job_verb.is_done()


# --- single cases


def test_a_job_that_outlasts_us_goes_on(
    answered_at_once: None, lab_ontap: OntapScene, lab_control: LabControl
) -> None:
    lab_control.set_faults(
        {"method": "POST", "path": VOLUMES, "job_hang_seconds": 1.0, "times": 1}
    )
    gateway = OntapGateway(lab_ontap.target.account, job_limit_seconds=0.2)
    spec = lab_ontap.volume_spec()
    with pytest.raises(Busy):
        gateway.create_volume(spec)
    gateway.close()
    assert comes_true(lambda: lab_ontap.gateway.find_volume(spec.name) is not None)


def test_a_name_that_is_just_being_taken(
    answered_at_once: None, lab_ontap: OntapScene, lab_control: LabControl
) -> None:
    lab_control.set_faults(
        {"method": "POST", "path": VOLUMES, "job_hang_seconds": 0.5, "times": 1}
    )
    gateway = OntapGateway(lab_ontap.target.account, job_limit_seconds=0.1)
    spec = lab_ontap.volume_spec()
    with pytest.raises(Busy):
        gateway.create_volume(spec)
    with pytest.raises(Busy) as raised:
        gateway.create_volume(spec)
    gateway.close()
    assert raised.value.remote_code == "13107405"
    assert comes_true(lambda: lab_ontap.gateway.find_volume(spec.name) is not None)


def test_an_ontap_that_is_too_slow_is_unreachable(
    lab_ontap: OntapScene, lab_control: LabControl
) -> None:
    account = dataclasses.replace(lab_ontap.target.account, timeout_seconds=0.2)
    gateway = OntapGateway(account)
    spec = lab_ontap.volume_spec()
    lab_control.set_faults(
        {"method": "POST", "path": VOLUMES, "latency_seconds": 1.0, "times": 1}
    )
    with pytest.raises(Unreachable):
        gateway.create_volume(spec)
    gateway.close()
    assert comes_true(lambda: lab_ontap.gateway.find_volume(spec.name) is not None)


def test_a_check_that_broke_off_is_taken_again(
    lab_ontap: OntapScene, lab_control: LabControl
) -> None:
    lab_control.set_faults({"method": "GET", "drop": True, "times": 1})
    assert lab_ontap.gateway.get_cluster().name


def test_a_check_at_a_job_may_fail(
    lab_ontap: OntapScene, lab_control: LabControl
) -> None:
    lab_control.set_faults(
        {"method": "GET", "path": "/api/cluster/jobs/*", "status": 503, "times": 2}
    )
    assert lab_ontap.make_volume().state == "online"


def test_checks_may_fail_late(lab_ontap: OntapScene, lab_control: LabControl) -> None:
    lab_control.set_settings(refusals="job")
    lab_ontap.make_volume()
    with pytest.raises(AlreadyExists):
        lab_ontap.make_volume()


def test_a_full_aggregate_is_named_as_the_reason(
    lab_ontap: OntapScene, lab_control: LabControl
) -> None:
    lab_control.set_settings(aggregate_is_full=True)
    with pytest.raises(OutOfSpace) as raised:
        lab_ontap.make_volume()
    assert "free space" in raised.value.sentence


@pytest.mark.parametrize("limit", ["max_volumes_per_svm", "max_clones_per_volume"])
def test_a_limit_is_named_as_the_reason(
    limit: str, lab_ontap: OntapScene, lab_control: LabControl
) -> None:
    lab_ontap.make_clone("a")
    lab_control.set_settings(**{limit: 1})
    with pytest.raises(LimitReached) as raised:
        lab_ontap.make_clone("b")
    assert "limit" in raised.value.sentence


def test_a_snapshot_too_many(lab_ontap: OntapScene, lab_control: LabControl) -> None:
    volume = lab_ontap.make_volume()
    lab_control.set_settings(max_snapshots_per_volume=1)
    lab_ontap.make_snapshot(volume, "cl_1")
    with pytest.raises(LimitReached) as raised:
        lab_ontap.make_snapshot(volume, "cl_2")
    assert raised.value.remote_code == "525062"


def test_a_deleted_clone_in_the_recovery_queue_still_holds_its_parent(
    lab_ontap: OntapScene, lab_control: LabControl
) -> None:
    clone = lab_ontap.make_clone()
    assert clone.clone_parent is not None
    lab_control.set_settings(recovery_queue_seconds=1)
    lab_ontap.gateway.delete_volume(clone.uuid, force=False)
    parent_uuid = clone.clone_parent.volume_uuid
    with pytest.raises(InUse):
        lab_ontap.gateway.delete_volume(parent_uuid, force=True)

    def parent_goes() -> bool:
        try:
            lab_ontap.gateway.delete_volume(parent_uuid, force=True)
        except InUse:
            return False
        return True

    assert comes_true(parent_goes)
