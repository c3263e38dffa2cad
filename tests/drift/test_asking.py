"""When a drift check runs, what it does not judge, and who may ask."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.drift.actions import drift_check_start, finding_resolve
from provisioner.drift.models import DriftCheck, FarSide, Finding
from provisioner.drift.refusals import FindingResolved
from provisioner.drift.sweeps.checks import check_all_sites, run_drift_check
from provisioner.engine.models import Operation
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.lib.refusals import NotAllowed
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from tests.support.drift_scene import (
    A_DAY,
    K,
    check_drift,
    long_ago,
    only,
)
from tests.support.jobs import run_jobs_once
from tests.support.lab import Lab

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("foreign"),
]


def test_what_is_in_motion_is_no_finding(
    lab_workspace: Workspace, lab_site: Site, ontap: OntapGateway, perforce: Any
) -> None:
    ontap.unmount_volume(lab_workspace.volume_uuid)
    perforce.clients.delete(lab_workspace.client_name)
    Operation.objects.filter(subject=lab_workspace.subject).update(
        ended_at=timezone.now()
    )
    assert check_drift(lab_site) == []  # it ended a moment ago

    long_ago()
    operation = Operation.objects.create(
        kind=WorkspaceOperation.RETIRE,
        subject=lab_workspace.subject,
        requested_by=lab_workspace.owner,
    )
    assert check_drift(lab_site) == []  # one runs

    operation.state, operation.ended_at = "failed", timezone.now() - A_DAY
    operation.save()
    assert len(check_drift(lab_site)) == 2


def test_nothing_is_concluded_from_no_answer(
    lab_workspace: Workspace,
    lab_site: Site,
    lab: Lab,
    ontap: OntapGateway,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ontap.unmount_volume(lab_workspace.volume_uuid)
    [found] = check_drift(lab_site)
    lab.break_ontap({"status": 503})

    run = run_drift_check(lab_site, system=FarSide.ONTAP)

    assert run.status_message
    assert run.checked_at is not None  # when it last could
    found.refresh_from_db()
    assert (found.resolved_at, found.times_seen) == (None, 1)
    with pytest.raises(CommandError):
        call_command("drift", "--json")
    lab.break_ontap()


def test_a_check_is_queued_once_per_side_and_run(
    lab_workspace: Workspace, lab_site: Site, admin: User, ontap: OntapGateway
) -> None:
    ontap.unmount_volume(lab_workspace.volume_uuid)
    assert drift_check_start(by=admin) == 2
    assert drift_check_start(by=admin) == 2
    check_all_sites(timestamp=0)

    run_jobs_once(queues=["storage", "perforce"])

    assert set(DriftCheck.objects.values_list("system", "asked_at")) == {
        ("ontap", None),
        ("perforce", None),
    }
    only(list(Finding.objects.all()), K.JUNCTION_DIFFERS)
    assert Event.objects.filter(kind="drift_check_requested", actor=admin).count() == 2
    event = lab_workspace.events.get(kind="drift_found")
    assert event.via == "drift check"


def test_a_finding_is_resolved_once_and_by_administrators(
    lab_workspace: Workspace, lab_site: Site, admin: User, ontap: OntapGateway
) -> None:
    ontap.unmount_volume(lab_workspace.volume_uuid)
    found = only(check_drift(lab_site), K.JUNCTION_DIFFERS)

    with pytest.raises(NotAllowed):
        finding_resolve(by=lab_workspace.owner, finding=found)
    with pytest.raises(NotAllowed):
        drift_check_start(by=lab_workspace.owner)
    finding_resolve(by=admin, finding=found)
    finding_resolve(by=admin, finding=found)
    run_jobs_once()

    with pytest.raises(FindingResolved):
        finding_resolve(by=admin, finding=found)
    asked = Event.objects.filter(kind="drift_repair_requested")
    assert [event.actor for event in asked] == [admin]
    assert Event.objects.get(kind="drift_resolved").actor == admin


def test_the_command_prints_what_was_found(
    lab_workspace: Workspace,
    lab_site: Site,
    ontap: OntapGateway,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ontap.unmount_volume(lab_workspace.volume_uuid)

    call_command("drift")
    out = capsys.readouterr().out
    assert "1 open findings." in out
    assert "To do: Finish: /drift/" in out
    call_command("drift", "--site", "lab", "--json")

    said = json.loads(capsys.readouterr().out)
    [finding] = said["findings"]
    assert (finding["kind"], finding["times_seen"]) == ("junction_differs", 2)
    assert {run["system"] for run in said["runs"]} == {"ontap", "perforce"}
    with pytest.raises(CommandError, match="no site"):
        call_command("drift", "--site", "nowhere")
