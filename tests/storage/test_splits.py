"""A clone becomes independent of its snapshot, by a real worker on the lab."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable

import pytest
from django.utils import timezone
from netapp_ontap import HostConnection
from netapp_ontap.resources import Snapshot as OntapSnapshot

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Template
from provisioner.catalog.retention import pins_of
from provisioner.engine.models import Operation, Step
from provisioner.gateways import registry
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.polling import wait_until
from provisioner.lib.refusals import ActionRefused
from provisioner.limits import sweeps as limit_sweeps
from provisioner.sites.models import AggregateSpace
from provisioner.storage.actions import (
    split_policy_save,
    workspace_split,
    workspace_split_stop,
)
from provisioner.storage.models import Split
from provisioner.storage.queries import measured_rate
from provisioner.workspaces.actions.checking import workspace_check
from provisioner.workspaces.actions.retiring import (
    workspace_purge,
    workspace_restore,
    workspace_retire,
)
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory
from tests.support.jobs import perform_again, settle
from tests.support.lab import Lab
from tests.support.ontap_scene import LabControl
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def root(transactional_db: None) -> User:
    return UserFactory.create(username="root-admin", is_staff=True)


def contents_of(workspace: Workspace) -> dict[str, tuple[int, int, int, str]]:
    """Return modes, owners and digests of all that is in it now, by path."""
    return {
        str(path): (
            *(path.lstat().st_mode, path.lstat().st_uid, path.lstat().st_gid),
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
        )
        for path in sorted(workspace.path.rglob("*"))
        if ".snapshot" not in path.parts
    }


def ontap_of(workspace: Workspace) -> OntapGateway:
    return registry.ontap(workspace.site)


def failure_of(operation: Operation) -> str:
    """Return the code with which an operation fails."""
    settle(operation.subject.workspace)
    operation.refresh_from_db()
    assert operation.state == Operation.State.FAILED
    return operation.status_code


def while_it_is_split(workspace: Workspace, act: Callable[[], object]) -> None:
    """Act once ONTAP splits the clone, while a worker follows that to its end."""

    def meanwhile() -> None:
        uuid = workspace.volume_uuid
        wait_until(
            lambda: ontap_of(workspace).get_clone_split(uuid).percent or None,
            limit_seconds=20,
        )
        act()

    acting = threading.Thread(target=meanwhile)
    acting.start()
    settle(workspace)
    acting.join()


def test_after_a_split_the_snapshot_goes_and_no_byte_changes(
    built_template: Template, lab: Lab
) -> None:
    template = built_template
    alice = UserFactory.create(username="alice", uid=20001, gid=20000)
    workspace = settle(workspace_create(by=alice, template=template))
    (workspace.path / "mine").write_bytes(b"not submitted" * 1000)
    before, snapshot = contents_of(workspace), workspace.snapshot
    split_policy_save(by=template.owner, site=workspace.site, owners_may_split=True)
    ontap = ontap_of(workspace)
    spaces = AggregateSpace.objects.filter(site=workspace.site)
    limit_sweeps.measure(workspace.site)
    spaces.update(size_bytes=2**60, available_bytes=2**60)
    assert failure_of(workspace_split(by=alice, workspace=workspace)) == (
        "no_room_to_split"
    )
    limit_sweeps.measure(workspace.site)

    workspace_split(by=alice, workspace=workspace)
    settle(workspace)

    assert workspace.is_independent
    split = workspace.splits.first()
    assert split is not None
    assert split.operation.state == Operation.State.SUCCEEDED
    assert split.estimate_bytes is not None
    assert workspace.split_bytes == split.estimate_bytes
    assert split.seconds is not None
    # The lab may be on a filesystem that shares no blocks.
    Split.objects.filter(pk=split.pk).update(estimate_bytes=3_000_000, seconds=2.0)
    assert measured_rate(workspace.site) == 1_500_000
    told = Event.objects.filter(workspace=workspace, kind__contains="independent")
    assert [event.actor for event in told] == [alice]
    [pins] = pins_of(template)
    assert pins.workspaces == []
    library = HostConnection(
        lab.ontap["host"],
        port=lab.ontap["port"],
        username=lab.ontap["user"],
        password=lab.ontap["password"],
        verify=lab.ontap["ca_file"],
    )
    library.session.trust_env = False
    with library:
        there = OntapSnapshot(template.volume_uuid, uuid=snapshot.ontap_uuid)
        assert there.delete(poll=True, poll_interval=0.1).is_err is False
    library.session.close()
    assert contents_of(workspace) == before

    workspace_retire(by=alice, workspace=workspace, unsubmitted="discard")
    assert settle(workspace).state == Workspace.State.TRASHED, workspace.status_message
    workspace_restore(by=alice, workspace=workspace)
    assert settle(workspace).state == Workspace.State.READY, workspace.status_message
    assert contents_of(workspace) == before
    workspace_retire(by=alice, workspace=workspace, unsubmitted="discard")
    settle(workspace)
    workspace_purge(by=alice, workspace=workspace)
    assert settle(workspace).state == Workspace.State.RETIRED, workspace.status_message
    assert ontap.find_volume(workspace.volume_name) is None


def test_a_split_that_somebody_stops_in_ontap_says_so_and_goes_on(
    lab_workspace: Workspace, root: User, control: LabControl
) -> None:
    control.set_settings(split_seconds=4.0)
    ontap = ontap_of(lab_workspace)
    workspace_split(by=root, workspace=lab_workspace)

    while_it_is_split(
        lab_workspace, lambda: ontap.stop_clone_split(lab_workspace.volume_uuid)
    )

    operation = lab_workspace.splits.get().operation
    assert operation.status_code == "split_stopped"
    assert lab_workspace.state == Workspace.State.READY
    assert not lab_workspace.is_independent
    assert measured_rate(lab_workspace.site) is None
    control.set_settings(split_seconds=0.1)
    workspace_split(by=root, workspace=lab_workspace)
    assert settle(lab_workspace).is_independent


def test_a_split_is_stopped_and_meanwhile_nothing_else_begins(
    lab_workspace: Workspace, root: User, control: LabControl
) -> None:
    control.set_settings(split_seconds=60.0)
    operation = workspace_split(by=root, workspace=lab_workspace)
    assert workspace_split(by=root, workspace=lab_workspace) == operation
    for act, code in (
        (workspace_retire, "being_split"),
        (workspace_check, "workspace_busy"),
    ):
        with pytest.raises(ActionRefused) as refused:
            act(by=root, workspace=lab_workspace)
        assert refused.value.code == code

    while_it_is_split(
        lab_workspace, lambda: workspace_split_stop(by=root, workspace=lab_workspace)
    )

    settle(lab_workspace)
    assert not lab_workspace.is_independent
    seen = ontap_of(lab_workspace).get_clone_split(lab_workspace.volume_uuid)
    assert (seen.is_clone, seen.is_running) == (True, False)
    with pytest.raises(ActionRefused) as refused:
        workspace_split_stop(by=root, workspace=lab_workspace)
    assert refused.value.code == "no_split_to_stop"


def test_a_lost_reply_and_a_killed_worker_split_once(
    lab_workspace: Workspace, root: User, lab: Lab
) -> None:
    lab.break_ontap(
        {
            "method": "PATCH",
            "path": "/api/storage/volumes*",
            "drop": True,
            "when": "after",
            "times": 1,
        }
    )
    workspace_split(by=root, workspace=lab_workspace)

    assert settle(lab_workspace).is_independent

    lab.break_ontap()
    step = Step.objects.get(name="split", operation__subject__workspace=lab_workspace)
    assert step.attempt == 2
    perform_again(step)


@pytest.mark.parametrize("what", ["offline", "mirrored", "not ours"])
def test_what_cannot_be_split_stays_a_clone(
    what: str, lab_workspace: Workspace, root: User
) -> None:
    ontap, uuid = ontap_of(lab_workspace), lab_workspace.volume_uuid
    if what == "not ours":
        ontap.set_volume_comment(uuid, comment="")
    if what == "offline":
        ontap.unmount_volume(uuid)
        ontap._write("PATCH", f"/storage/volumes/{uuid}", body={"state": "offline"})

    if what == "mirrored":
        source = f"{lab_workspace.site.svm}:{lab_workspace.volume_name}"
        ends = {
            "source": {"path": source},
            "destination": {"path": f"{source}_mirror"},
            "create_destination": {"enabled": True},
        }
        ontap._write("POST", "/snapmirror/relationships", body=ends)

    operation = workspace_split(by=root, workspace=lab_workspace)

    codes = {
        "offline": ("clone_offline", "Bring it online, then split it again."),
        "mirrored": ("clone_mirrored", "deletes and releases that relationship first"),
        "not ours": ("volume_is_not_ours", ""),
    }
    code, what_to_do = codes[what]
    assert failure_of(operation) == code
    assert what_to_do in operation.status_message
    if what == "mirrored":
        ontap._write(
            "DELETE", "/snapmirror/relationships", query={"source.path": source}
        )
    lab_workspace.refresh_from_db()
    assert lab_workspace.state == Workspace.State.READY
    assert not lab_workspace.is_independent
    assert Event.objects.filter(kind="split_failed").exists()


def test_only_some_may_split_and_only_some_workspaces(
    ready: Workspace, alice: User, carol: User, admin: User
) -> None:
    def refusal(by: User) -> str:
        with pytest.raises(ActionRefused) as refused:
            workspace_split(by=by, workspace=ready)
        return refused.value.code

    assert refusal(carol) == "not_allowed"
    assert refusal(alice) == "split_not_allowed"
    split_policy_save(by=admin, site=ready.site, owners_may_split=True)
    Workspace.objects.filter(pk=ready.pk).update(split_bytes=2**40)
    AggregateSpace.objects.create(
        site=ready.site,
        name=ready.site.aggregate,
        size_bytes=2**41,
        available_bytes=2**38,
        measured_at=timezone.now(),
    )
    assert refusal(alice) == "no_room_to_split"
    AggregateSpace.objects.update(available_bytes=2**41)
    workspace_split(by=alice, workspace=ready)
    assert Split.objects.get().operation.requested_by == alice
    with pytest.raises(ActionRefused) as refused:
        split_policy_save(by=alice, site=ready.site, owners_may_split=False)
    assert refused.value.code == "not_allowed"
