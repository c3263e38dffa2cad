"""The pages of work that is transferred."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.leases.actions.abandoned import abandoned_retire
from provisioner.transfer.actions import workspace_transfer
from provisioner.transfer.models import Transfer
from provisioner.workspaces.models import Workspace, WorkspaceOperation
from provisioner.workspaces.states import set_workspace_state
from tests.support.abandoned import abandon
from tests.support.factories import SnapshotFactory
from tests.support.requests import workspace_create
from tests.support.transfers import has_arrived

SignIn = Callable[[User], Client]


def be_ready(workspace: Workspace) -> Workspace:
    operation = workspace.operations.get(state=Operation.State.RUNNING)
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    engine_states.skip_waiting_steps(operation)
    set_workspace_state(workspace, Workspace.State.READY)
    return workspace


@pytest.fixture
def outdated(alice: User, snapshot: Snapshot) -> Workspace:
    """One of alice's, with a newer snapshot beside it."""
    workspace = be_ready(workspace_create(by=alice, template=snapshot.template))
    Snapshot.objects.filter(pk=snapshot.pk).update(
        created_at=timezone.now() - dt.timedelta(days=1)
    )
    SnapshotFactory.create(template=snapshot.template, change=120)
    workspace.refresh_from_db()
    return workspace


def test_the_button_checks_the_workspace(
    outdated: Workspace, alice: User, signed_in: SignIn
) -> None:
    browser = signed_in(alice)
    address = reverse("workspace-check", args=[outdated.pk])
    assert address in browser.get(workspace_page(outdated)).content.decode()

    answer = browser.post(address, {"then": "transfer"})

    assert answer["Location"] == reverse("workspace-transfer", args=[outdated.pk])
    look = outdated.operations.get(kind=WorkspaceOperation.CHECK)
    part = browser.get(answer["Location"], headers={"HX-Request": "true"})
    assert "every 1s" in part.content.decode()
    engine_states.end_operation(
        look,
        Operation.State.SUCCEEDED,
        findings={
            "untracked": [{"path": "/w/notes.txt"}],
            "blockers": ["Two files are not resolved."],
        },
    )
    page = browser.get(answer["Location"]).content.decode()
    assert "/w/notes.txt" in page
    assert "Two files are not resolved." in page
    assert "every 1s" not in page


def workspace_page(workspace: Workspace) -> str:
    return reverse("workspace-detail", args=[workspace.pk])


def test_what_is_chosen_is_what_is_asked_for(
    outdated: Workspace, alice: User, signed_in: SignIn
) -> None:
    address = reverse("workspace-transfer", args=[outdated.pk])

    answer = signed_in(alice).post(
        address, {"name": "newer", "takes_untracked": "on", "retires_source": "on"}
    )

    transfer = Transfer.objects.get(source=outdated)
    assert answer["Location"] == workspace_page(transfer.workspace)
    assert transfer.workspace.name == "newer"
    assert transfer.workspace.snapshot.change == 120
    chosen = (transfer.takes_changed, transfer.takes_untracked, transfer.retires_source)
    assert chosen == (False, True, True)
    made = signed_in(alice).get(answer["Location"]).content.decode()
    assert reverse("workspace-transfer-abort", args=[transfer.workspace.pk]) in made
    signed_in(alice).post(
        reverse("workspace-transfer-abort", args=[transfer.workspace.pk])
    )
    transfer.workspace.refresh_from_db()
    assert transfer.workspace.state == Workspace.State.RETIRING


@pytest.mark.parametrize(
    "bad", [{"quality": "failed"}, {"parts": [{"path": "//depot/...", "change": 130}]}]
)
def test_nobody_comes_unasked_to_what_is_not_handed_out_so(
    outdated: Workspace, alice: User, signed_in: SignIn, bad: dict[str, Any]
) -> None:
    chosen = SnapshotFactory.create(template=outdated.template, change=130, **bad)
    address = reverse("workspace-transfer", args=[outdated.pk])
    assert (
        "Latest (recommended): change 120"
        in signed_in(alice).get(address).content.decode()
    )

    signed_in(alice).post(address)

    assert Transfer.objects.get(source=outdated).workspace.snapshot.change == 120
    Transfer.objects.all().delete()
    outdated.template.snapshots.filter(change=120).update(deleted_at=timezone.now())
    page = signed_in(alice).get(workspace_page(outdated)).content.decode()
    assert "has a newer snapshot" not in page
    refused = signed_in(alice).post(address)
    assert "Choose a snapshot, or" in refused.content.decode()
    signed_in(alice).post(address, {"snapshot": chosen.pk})
    assert Transfer.objects.get(source=outdated).workspace.snapshot == chosen


def test_a_source_that_looks_abandoned_is_refused_in_the_preview_already(
    outdated: Workspace, alice: User, admin: User
) -> None:
    workspace_transfer(by=alice, workspace=outdated)
    abandon(outdated)

    [said] = abandoned_retire(by=admin, pks=[outdated.pk], preview=True)

    assert said.code == "being_transferred"


def test_conflicts_are_shown_with_their_commands(
    outdated: Workspace, alice: User, signed_in: SignIn
) -> None:
    made = be_ready(workspace_transfer(by=alice, workspace=outdated))
    has_arrived(made, outcome="The old one stays.")

    page = signed_in(alice).get(workspace_page(made)).content.decode()

    assert "1 file is left for you to resolve" in page
    assert "mv -f &#x27;a b.txt.from-old&#x27; &#x27;a b.txt&#x27;" in page
    assert "3 opened files, 1 of them merged" in page
    assert "4 missing" in page
    assert "The old one stays." in page
