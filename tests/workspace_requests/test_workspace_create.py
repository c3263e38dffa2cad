"""Asking for a workspace: what is refused, and what is written when it is not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st
from procrastinate.contrib.django.models import ProcrastinateJob

from provisioner.accounts.models import User
from provisioner.accounts.refusals import AccountIncomplete
from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.refusals import NoGoodSnapshot, NoSnapshot, SnapshotGone
from provisioner.engine.models import Step
from provisioner.lib.names import name_validator
from provisioner.lib.refusals import ActionRefused, InvalidRequest, NameTaken
from provisioner.workspaces.actions.making import _as_name
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.refusals import RequestKeyReused
from tests.support.factories import SnapshotFactory, UserFactory
from tests.support.requests import workspace_create


def test_create_queues_the_check_at_read_access(
    alice: User, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)

    queued = Step.objects.filter(
        operation__subject__workspace=workspace, state=Step.State.QUEUED
    )
    assert {step.name for step in queued} == {"access"}
    jobs = ProcrastinateJob.objects.filter(pk__in=queued.values("job_id"))
    assert {job.queue_name for job in jobs} == {"perforce"}
    assert workspace.state == Workspace.State.PROVISIONING
    assert workspace.events.get().actor == alice


def test_create_takes_the_newest_snapshot(alice: User, snapshot: Snapshot) -> None:
    newer = SnapshotFactory.create(template=snapshot.template, change=200)

    assert workspace_create(by=alice, template=snapshot.template).snapshot == newer


def test_create_takes_the_snapshot_that_was_chosen(
    alice: User, snapshot: Snapshot
) -> None:
    SnapshotFactory.create(template=snapshot.template, change=200)

    workspace = workspace_create(
        by=alice, template=snapshot.template, snapshot=snapshot
    )

    assert workspace.snapshot == snapshot


def test_create_refuses_a_template_without_snapshot(
    alice: User, template: Template
) -> None:
    with pytest.raises(NoSnapshot, match="main"):
        workspace_create(by=alice, template=template)


def test_create_refuses_a_deleted_snapshot(alice: User, snapshot: Snapshot) -> None:
    snapshot.deleted_at = timezone.now()
    snapshot.save()

    with pytest.raises(SnapshotGone):
        workspace_create(by=alice, template=snapshot.template, snapshot=snapshot)


def test_create_refuses_the_snapshot_of_another_template(
    alice: User, snapshot: Snapshot
) -> None:
    other = SnapshotFactory.create()

    with pytest.raises(InvalidRequest):
        workspace_create(by=alice, template=snapshot.template, snapshot=other)


def test_create_refuses_an_account_without_uid(snapshot: Snapshot) -> None:
    nobody = UserFactory.create(username="nobody", uid=None, gid=None)

    with pytest.raises(AccountIncomplete, match="nobody"):
        workspace_create(by=nobody, template=snapshot.template)


def test_create_refuses_an_unknown_purpose(alice: User, snapshot: Snapshot) -> None:
    with pytest.raises(InvalidRequest, match="lunch"):
        workspace_create(by=alice, template=snapshot.template, purpose="lunch")


def test_create_refuses_a_taken_name_and_leaves_nothing(
    alice: User, carol: User, snapshot: Snapshot
) -> None:
    workspace_create(by=alice, template=snapshot.template, name="mine")
    jobs = ProcrastinateJob.objects.count()

    with pytest.raises(NameTaken, match="mine"):
        workspace_create(by=carol, template=snapshot.template, name="mine")

    assert Workspace.objects.count() == 1
    assert ProcrastinateJob.objects.count() == jobs


@pytest.mark.parametrize(
    "name",
    [
        "-a",
        "a-",
        "a--b",
        "A",
        "ä",
        "a b",
        "a/b",
        "a_b",
        "1a",
        "a" * 41,
        "a\n",
        "..",
        "*",
    ],
)
def test_create_refuses_what_is_not_a_name(
    name: str, alice: User, snapshot: Snapshot
) -> None:
    with pytest.raises(InvalidRequest, match="lower-case letters"):
        workspace_create(by=alice, template=snapshot.template, name=name)

    assert not Workspace.objects.exists()


def test_create_makes_a_name_from_owner_and_template(
    alice: User, snapshot: Snapshot
) -> None:
    first = workspace_create(by=alice, template=snapshot.template, request_key="1")
    second = workspace_create(by=alice, template=snapshot.template, request_key="2")

    assert [first.name, second.name] == ["alice-main", "alice-main-2"]


def test_a_second_click_is_the_same_request(alice: User, snapshot: Snapshot) -> None:
    first = workspace_create(by=alice, template=snapshot.template)
    second = workspace_create(by=alice, template=snapshot.template)

    assert first == second
    assert first.operations.count() == 1


def test_machines_get_as_many_build_clones_as_they_ask_for(
    ci: User, snapshot: Snapshot
) -> None:
    made = {
        workspace_create(by=ci, template=snapshot.template, purpose="build").pk
        for _ in range(3)
    }

    assert len(made) == 3


def test_a_request_for_another_snapshot_is_not_the_same(
    alice: User, snapshot: Snapshot
) -> None:
    newer = SnapshotFactory.create(template=snapshot.template, change=200)

    first = workspace_create(by=alice, template=snapshot.template)
    other = workspace_create(by=alice, template=snapshot.template, snapshot=snapshot)

    assert first.snapshot == newer
    assert other.snapshot == snapshot


def test_a_second_click_is_the_same_request_though_a_build_was_published_between(
    alice: User, snapshot: Snapshot
) -> None:
    first = workspace_create(by=alice, template=snapshot.template)
    SnapshotFactory.create(template=snapshot.template, change=200)

    assert workspace_create(by=alice, template=snapshot.template) == first


@pytest.mark.parametrize("differs", [{"wants_reconcile": True}, {"lease_seconds": 60}])
def test_a_request_that_differs_is_answered_for_itself(
    alice: User, snapshot: Snapshot, differs: dict[str, Any]
) -> None:
    first = workspace_create(by=alice, template=snapshot.template)
    other = workspace_create(by=alice, template=snapshot.template, **differs)

    assert other != first


def test_a_quality_that_no_snapshot_has_is_refused_while_another_is_being_made(
    alice: User, snapshot: Snapshot
) -> None:
    workspace_create(by=alice, template=snapshot.template)

    with pytest.raises(NoGoodSnapshot):
        workspace_create(by=alice, template=snapshot.template, quality="tested")


def test_the_same_key_is_the_same_request(alice: User, snapshot: Snapshot) -> None:
    first = workspace_create(by=alice, template=snapshot.template, request_key="k")
    again = workspace_create(by=alice, template=snapshot.template, request_key="k")

    assert first == again


def test_a_key_is_refused_for_another_request(alice: User, snapshot: Snapshot) -> None:
    workspace_create(by=alice, template=snapshot.template, request_key="k")

    with pytest.raises(RequestKeyReused):
        workspace_create(
            by=alice, template=snapshot.template, request_key="k", purpose="build"
        )


def test_keys_of_two_people_do_not_meet(
    alice: User, carol: User, snapshot: Snapshot
) -> None:
    first = workspace_create(by=alice, template=snapshot.template, request_key="k")
    other = workspace_create(by=carol, template=snapshot.template, request_key="k")

    assert first != other


@pytest.mark.parametrize("request_fields", [{}, {"name": "mine"}, {"request_key": "k"}])
@pytest.mark.django_db(transaction=True)
def test_identical_requests_at_once_make_one_workspace(
    request_fields: dict[str, Any], jobs_emptied: None
) -> None:
    alice, snapshot = UserFactory.create(username="alice"), SnapshotFactory.create()

    def ask(_: int) -> int | str:
        try:
            return workspace_create(
                by=alice, template=snapshot.template, **request_fields
            ).pk
        except ActionRefused as refusal:
            return refusal.code
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(ask, range(8)))

    workspace = Workspace.objects.get()
    assert answers - {"name_taken"} == {workspace.pk}


def test_build_only_needs_no_client(ci: User, snapshot: Snapshot) -> None:
    workspace = workspace_create(by=ci, template=snapshot.template, purpose="build")

    operation = workspace.operations.get()
    names = set(operation.steps.values_list("name", flat=True))
    assert names == {"access", "clone", "export", "mount", "owner"}
    assert workspace.client_name == ""


@given(st.text(min_size=1))
def test_any_text_becomes_a_name(text: str) -> None:
    name_validator(_as_name(f"x{text}"))


@given(st.from_regex(name_validator.regex, fullmatch=True))
def test_names_and_volumes_map_both_ways(name: str) -> None:
    workspace = Workspace(name=name)

    volume = workspace.volume_name
    assert volume.removeprefix("cy_").rsplit("_w", 1)[0].replace("_", "-") == name
    assert len(volume) <= 203
    assert volume.replace("_", "").isalnum()
