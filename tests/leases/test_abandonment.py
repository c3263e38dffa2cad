"""What the signs of life of a workspace come to."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation
from provisioner.leases.abandoned import abandoned_matching, abandoned_workspaces
from provisioner.leases.abandonment import Abandonment, abandonment_of
from provisioner.lib.refusals import NotAllowed
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.abandoned import abandon
from tests.support.requests import workspace_create


def make_ready(owner: User, snapshot: Snapshot, *, name: str) -> Workspace:
    workspace = workspace_create(by=owner, template=snapshot.template, name=name)
    operation = workspace.operations.get()
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    engine_states.skip_waiting_steps(operation)
    set_workspace_state(workspace, Workspace.State.READY)
    return workspace


def read(workspace: Workspace) -> Abandonment:
    return abandonment_of(workspace, now=timezone.now())


@pytest.mark.parametrize(
    ("days", "signs", "is_abandoned"),
    [
        (27, {}, False),
        (29, {}, True),
        (41, {"submitted": 1}, False),
        (41, {"shelved": 1}, False),
        (41, {"pending": 1}, False),
        (41, {"files": 1}, False),
        (41, {"touched": 1}, False),
        (41, {"submitted": 35, "files": 30}, True),
        # A P4V that was left open names the client: that alone keeps it for a while.
        (41, {"accessed": 0.1}, False),
        (60, {"accessed": 0.1}, True),
        (60, {"accessed": 0.1, "submitted": 40}, False),
    ],
)
def test_no_single_sign_decides(
    ready: Workspace,
    admin: User,
    days: int,
    signs: dict[str, float],
    is_abandoned: bool,
) -> None:
    abandon(ready, days=days, **signs)

    assert abandoned_matching(admin).exists() == is_abandoned


def test_what_nobody_has_checked_is_not_abandoned(
    ready: Workspace, admin: User
) -> None:
    abandon(ready)
    ready.activity_seen_at = None
    ready.save()

    assert not abandoned_matching(admin)
    assert read(ready).sentence == "Not checked yet."


def test_each_sign_says_its_time(ready: Workspace) -> None:
    abandon(ready, days=41, submitted=50, files=45, touched=33)
    ready.activity["opened"] = {"count": 3}

    found = read(ready)

    sentences = {signal.kind: signal.sentence for signal in found.signals}
    assert sentences["accessed"] == "no Perforce command for 41 days"
    assert sentences["submitted"] == "no submitted change for 50 days"
    assert sentences["shelved"] == "nothing is shelved from it"
    # Older than the workspace: it came with the template.
    assert sentences["files"] == "no file was changed since it was created"
    assert sentences["touched"] == "no request of its owner here for 33 days"
    assert sentences["opened"].startswith("3 files are opened")
    assert found.idle_days == 33


def test_how_far_a_check_came_is_said(ready: Workspace) -> None:
    abandon(ready, days=41, files=30)
    ready.activity["files"]["detail"] = "of the first 50,000 entries"

    [files] = [signal for signal in read(ready).signals if signal.kind == "files"]

    assert files.sentence == (
        "no changed file for 30 days (of the first 50,000 entries)"
    )


def test_the_list_says_who_else_pins_the_snapshot(
    ready: Workspace, alice: User, admin: User, snapshot: Snapshot
) -> None:
    make_ready(alice, snapshot, name="other")
    abandon(ready)
    Workspace.objects.filter(pk=ready.pk).update(unique_bytes=7)

    found = abandoned_workspaces(admin)

    [one] = found.workspaces
    assert one.workspace == ready
    assert (one.snapshot_clones, one.is_last_clone) == (2, False)
    assert (found.frees_bytes, found.unmeasured, found.unseen) == (7, 0, 1)


def test_the_longest_idle_come_first(
    ready: Workspace, alice: User, admin: User, snapshot: Snapshot
) -> None:
    other = abandon(make_ready(alice, snapshot, name="other"), days=90)
    abandon(ready, days=41)

    found = abandoned_workspaces(admin)

    assert [one.workspace for one in found.workspaces] == [other, ready]


def test_more_of_them_take_no_more_queries(
    ready: Workspace,
    alice: User,
    admin: User,
    snapshot: Snapshot,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(5):
        abandon(make_ready(alice, snapshot, name=f"w{number}"), days=41)

    # Those found, lease policies, other clones, who was asked, those being retired,
    # what all of them come to, how many were not looked at.
    with django_assert_num_queries(7):
        assert len(abandoned_workspaces(admin).workspaces) == 5


def test_it_is_for_administrators(alice: User) -> None:
    with pytest.raises(NotAllowed):
        abandoned_workspaces(alice)


def test_a_kept_one_is_listed_with_its_reason(ready: Workspace, admin: User) -> None:
    abandon(ready)
    Workspace.objects.filter(pk=ready.pk).update(
        keep_reason="The fair", expires_at=None
    )

    [one] = abandoned_workspaces(admin).workspaces

    assert one.deadline.kept_because == "The fair"
    assert one.abandonment.idle_since < timezone.now() - dt.timedelta(days=40)
