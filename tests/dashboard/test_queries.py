"""Who sees what, and in how many queries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db.models import QuerySet
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Snapshot, Template, references_of
from provisioner.catalog.queries import (
    default_snapshot,
    defaults_among,
    snapshots_visible_to,
    templates_visible_to,
)
from provisioner.engine.models import Operation
from provisioner.engine.queries import operations_visible_to
from provisioner.workspaces import queries as workspace_queries
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.factories import SnapshotFactory, TemplateFactory, purge
from tests.support.requests import workspace_create


def ask(by: User, template: Template, *, count: int = 1) -> list[Workspace]:
    taken = Workspace.objects.count()
    return [
        workspace_create(by=by, template=template, name=f"{by.username}-{number}")
        for number in range(taken, taken + count)
    ]


def test_people_see_their_workspaces_and_administrators_all(
    alice: User, carol: User, admin: User, snapshot: Snapshot
) -> None:
    [hers] = ask(alice, snapshot.template)
    [strange] = ask(carol, snapshot.template)

    assert list(workspace_queries.workspaces_visible_to(alice)) == [hers]
    assert list(workspace_queries.workspaces_visible_to(carol)) == [strange]
    assert set(workspace_queries.workspaces_visible_to(admin)) == {hers, strange}
    assert list(workspace_queries.workspaces_of(admin)) == []


def test_an_administrator_who_left_sees_nothing_of_others(
    alice: User, admin: User, snapshot: Snapshot
) -> None:
    ask(alice, snapshot.template)
    admin.is_active = False

    assert not workspace_queries.workspaces_visible_to(admin).exists()


def test_retired_workspaces_are_seen_but_not_among_ones_own(
    alice: User, snapshot: Snapshot
) -> None:
    [workspace] = ask(alice, snapshot.template)
    set_workspace_state(workspace, Workspace.State.RETIRING)
    purge(workspace)

    assert list(workspace_queries.workspaces_visible_to(alice)) == [workspace]
    assert not workspace_queries.workspaces_of(alice).exists()


def test_operations_are_seen_with_ones_workspaces_and_builds_by_all(
    alice: User, carol: User, admin: User, snapshot: Snapshot
) -> None:
    [workspace] = ask(alice, snapshot.template)
    provision = workspace.operations.get()
    build = template_build(by=admin, template=snapshot.template)

    assert set(operations_visible_to(alice)) == {provision, build}
    assert set(operations_visible_to(carol)) == {build}
    assert set(operations_visible_to(admin)) == {provision, build}


def test_the_default_snapshot_is_the_newest_that_is_there(
    alice: User, snapshot: Snapshot
) -> None:
    template = snapshot.template
    newer = SnapshotFactory.create(template=template, change=200)
    SnapshotFactory.create(change=300)
    assert default_snapshot(template) == newer
    assert references_of([template]) == {template.pk: newer}

    Snapshot.objects.filter(pk=newer.pk).update(deleted_at=timezone.now())

    assert default_snapshot(template) == snapshot
    assert newer not in Snapshot.objects.available()
    assert newer not in snapshots_visible_to(alice)


@pytest.mark.django_db
def test_a_template_without_snapshot_has_no_default() -> None:
    template = TemplateFactory.create()

    assert default_snapshot(template) is None
    assert not references_of([template])


def test_the_newest_operation_of_a_workspace_is_the_last(
    alice: User, snapshot: Snapshot
) -> None:
    [workspace] = ask(alice, snapshot.template)
    [loaded] = workspace_queries.with_newest_operation(Workspace.objects.all())

    assert vars(loaded.subject)["newest_operations"] == [workspace.operations.get()]
    assert workspace_queries.latest_operation(workspace) == workspace.operations.get()
    assert workspace_queries.latest_operation(snapshot.template) is None


def shown_workspaces(rows: QuerySet[Workspace]) -> list[object]:
    return [
        (
            *(row.owner, row.template, row.snapshot, row.site.perforce_server),
            [
                list(operation.steps.all())
                for operation in vars(row.subject)["newest_operations"]
            ],
        )
        for row in workspace_queries.with_newest_operation(rows)
    ]


def shown_operations(rows: QuerySet[Operation]) -> list[object]:
    return [(row.site, row.requested_by, list(row.steps.all())) for row in rows]


def shown_templates(rows: QuerySet[Template]) -> list[object]:
    defaults = defaults_among(references_of(list(rows)))
    return [(row.site.perforce_server, defaults[row.pk].change) for row in rows]


def shown_snapshots(rows: QuerySet[Snapshot]) -> list[object]:
    return [row.template.site for row in rows]


@pytest.mark.parametrize(
    ("query", "shown", "count"),
    [
        (workspace_queries.workspaces_visible_to, shown_workspaces, 3),
        (workspace_queries.workspaces_of, shown_workspaces, 3),
        (operations_visible_to, shown_operations, 2),
        (templates_visible_to, shown_templates, 2),
        (snapshots_visible_to, shown_snapshots, 1),
    ],
)
@pytest.mark.parametrize("rows", [1, 6])
def test_queries_are_as_many_for_many_rows_as_for_one(
    rows: int,
    query: Callable[[User], QuerySet[Any]],
    shown: Callable[[QuerySet[Any]], list[object]],
    count: int,
    alice: User,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    for _ in range(rows):
        ask(alice, SnapshotFactory.create().template)

    with django_assert_num_queries(count):
        assert len(shown(query(alice))) == rows
