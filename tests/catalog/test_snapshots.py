"""Which snapshot is handed out, which can be chosen, and what keeps each."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog import freshness, retention
from provisioner.catalog.actions.templates import template_build, template_update
from provisioner.catalog.models import Snapshot, Template, references_of
from provisioner.catalog.queries import (
    default_snapshot,
    defaults_among,
    reference_snapshot,
)
from provisioner.catalog.refusals import (
    NoGoodSnapshot,
    NoSnapshot,
    NothingToRefresh,
    TemplateInvalid,
)
from provisioner.lib.refusals import InvalidRequest
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.behind import freshness_of, known_to_be_behind
from tests.support.factories import SnapshotFactory, UserFactory, purge
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db

PART = [{"path": "//depot/main/src/...", "change": 400}]


@pytest.fixture
def tested_template(template: Template) -> Template:
    """A template that asks for tested snapshots, with a row of each kind."""
    Template.objects.filter(pk=template.pk).update(
        test_command="make test", wanted_quality="tested"
    )
    template.refresh_from_db()
    for change, quality, parts in (
        (100, "tested", []),
        (200, "built", []),
        (300, "failed", []),
        (350, "tested", PART),
    ):
        SnapshotFactory.create(
            template=template, change=change, quality=quality, parts=parts
        )
    return template


def of_change(template: Template, change: int) -> Snapshot:
    return template.snapshots.get(change=change)


def wants(template: Template, quality: str) -> Template:
    Template.objects.filter(pk=template.pk).update(wanted_quality=quality)
    template.refresh_from_db()
    return template


# --- what is handed out


@pytest.mark.parametrize(("quality", "change"), [("tested", 100), ("built", 200)])
def test_the_default_is_the_newest_whole_one_that_is_good_enough(
    tested_template: Template, quality: str, change: int, alice: User
) -> None:
    template = wants(tested_template, quality)

    assert default_snapshot(template) == of_change(template, change)
    offered = references_of([template])[template.pk]
    assert (offered.change, vars(offered)["is_default"]) == (change, True)
    pins = retention.pins_of(template)
    assert [pin.snapshot.change for pin in pins if pin.is_default] == [change]
    assert workspace_create(by=alice, template=template).snapshot.change == change


def test_a_quality_that_is_asked_for_comes_before_the_templates(
    tested_template: Template, alice: User
) -> None:
    built = workspace_create(by=alice, template=tested_template, quality="built")
    template = wants(tested_template, "built")
    tested = workspace_create(by=alice, template=template, quality="tested")

    assert (built.snapshot.change, tested.snapshot.change) == (200, 100)
    assert default_snapshot(template, quality="built") == built.snapshot


@pytest.mark.parametrize("change", [100, 300, 350])
def test_any_snapshot_can_be_chosen(
    tested_template: Template, alice: User, change: int
) -> None:
    chosen = of_change(tested_template, change)

    workspace = workspace_create(by=alice, template=tested_template, snapshot=chosen)

    assert workspace.snapshot == chosen


def test_without_a_good_one_a_clear_sentence_says_so(
    tested_template: Template, alice: User
) -> None:
    Snapshot.objects.filter(change=100).update(deleted_at=timezone.now())

    with pytest.raises(NoGoodSnapshot, match="no snapshot that is tested"):
        workspace_create(by=alice, template=tested_template)

    assert not Workspace.objects.exists()
    # What is compared with what was submitted is then the newest that is whole.
    assert reference_snapshot(tested_template) == of_change(tested_template, 300)
    references = references_of([tested_template])
    assert references == {tested_template.pk: of_change(tested_template, 300)}
    assert not defaults_among(references)


def test_without_any_the_sentence_is_another(template: Template, alice: User) -> None:
    with pytest.raises(NoSnapshot):
        workspace_create(by=alice, template=template, quality="built")


def test_a_quality_makes_no_sense_with_a_snapshot_or_by_another_name(
    tested_template: Template, alice: User
) -> None:
    with pytest.raises(InvalidRequest, match="Choose either a snapshot or a quality"):
        workspace_create(
            by=alice,
            template=tested_template,
            snapshot=of_change(tested_template, 100),
            quality="built",
        )
    for quality in ("failed", "splendid"):
        with pytest.raises(InvalidRequest, match=quality):
            workspace_create(by=alice, template=tested_template, quality=quality)


def test_what_is_tested_can_be_asked_for_only_where_there_is_a_test(
    template: Template,
) -> None:
    with pytest.raises(TemplateInvalid, match="without a test command"):
        template_update(by=template.owner, template=template, wanted_quality="tested")


# --- how far behind


def test_each_snapshot_knows_how_far_it_is_behind(template: Template) -> None:
    old = SnapshotFactory.create(template=template, change=100)
    new = SnapshotFactory.create(template=template, change=102)
    part = SnapshotFactory.create(template=template, change=100, parts=PART)
    assert freshness.behind_of([old, new]) == {}

    known_to_be_behind(old, "alice", "bob", "carol")

    assert freshness.behind_of([old, new, part]) == {old.pk: 3, new.pk: 1}


def test_a_template_is_behind_by_what_its_default_lacks(
    tested_template: Template,
) -> None:
    known_to_be_behind(of_change(tested_template, 100), "alice", "bob")

    now = freshness_of(tested_template)

    assert now is not None
    assert now.changes == 2


# --- what keeps a snapshot


def kept(template: Template) -> dict[int, list[str]]:
    return {
        pin.snapshot.change: pin.reasons + [w.name for w in pin.workspaces]
        for pin in retention.pins_of(template)
    }


def keep(template: Template, count: int) -> None:
    Template.objects.filter(pk=template.pk).update(snapshots_to_keep=count)
    template.refresh_from_db()


def test_the_last_good_one_is_kept_however_many_came_later(
    tested_template: Template,
) -> None:
    keep(tested_template, 1)

    assert [s.change for s in retention.superfluous(tested_template)] == [300, 200]
    said = kept(tested_template)
    assert said[350] == ["it is the newest"]
    assert said[100] == [
        "new workspaces are cloned from it",
        "it is the newest that was tested",
    ]


def test_the_last_tested_one_is_kept_where_built_ones_are_handed_out(
    tested_template: Template,
) -> None:
    template = wants(tested_template, "built")
    keep(template, 1)

    assert [s.change for s in retention.superfluous(template)] == [300]


def test_what_a_workspace_needs_is_kept_until_it_is_gone_for_good(
    tested_template: Template, alice: User
) -> None:
    keep(tested_template, 1)
    failed = of_change(tested_template, 300)
    workspace = workspace_create(
        by=alice, template=tested_template, snapshot=failed, name="mine"
    )
    for state in (Workspace.State.RETIRING, Workspace.State.TRASHED):
        assert kept(tested_template)[300] == ["mine"]
        assert not retention.mark_deleted(failed)
        set_workspace_state(workspace, state)
    assert kept(tested_template)[300] == ["mine"]
    for state in (Workspace.State.PURGING, Workspace.State.RETIRED):
        set_workspace_state(workspace, state)

    assert failed in retention.superfluous(tested_template)
    assert retention.mark_deleted(failed)
    failed.refresh_from_db()
    assert failed.deleted_at is not None


def test_pins_take_few_queries(
    tested_template: Template, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        owner = UserFactory.create(username=f"somebody{number}")
        workspace_create(by=owner, template=tested_template)

    with django_assert_num_queries(4):
        pins = retention.pins_of(tested_template)
        names = [(w.owner.username, p.reasons) for p in pins for w in p.workspaces]

    assert len(names) == 3
    [pin] = [p for p in retention.pins_of(tested_template, named=2) if p.workspaces]
    assert [w.owner.username for w in pin.workspaces] == ["somebody0", "somebody1"]
    assert (pin.workspaces_number, pin.more) == (3, 1)


# --- builds of parts


def test_parts_have_to_be_depot_paths_of_the_view(template: Template) -> None:
    admin = template.owner
    with pytest.raises(NothingToRefresh):
        template_build(by=admin, template=template, paths=["//depot/main/src/..."])
    SnapshotFactory.create(template=template)
    for wrong in (
        "//depot/other/...",
        "//depot/main/a@1",
        "//depot/main/a#1",
        "//depot",
        "depot/main",
        "//depot/main/*",
        "//depot/main/%%1",
        '//depot/main/"a',
        "//depot//main",
        "",
    ):
        with pytest.raises(InvalidRequest):
            template_build(by=admin, template=template, paths=[wrong])
    with pytest.raises(InvalidRequest, match="whole view"):
        template_build(
            by=admin, template=template, paths=["//depot/main/a"], is_clean=True
        )
    paths = [f"//depot/main/{n}" for n in range(101)]
    with pytest.raises(InvalidRequest, match="At most"):
        template_build(by=admin, template=template, paths=paths)
    template.refresh_from_db()
    assert template.state == Template.State.NEW
    assert not template.operations.exists()


def test_a_build_of_parts_says_nothing_about_the_refresh_of_all(
    template: Template,
) -> None:
    snapshot = SnapshotFactory.create(template=template)
    known_to_be_behind(snapshot, "alice")
    operation = template_build(
        by=template.owner,
        template=template,
        change=snapshot.change + 1,
        paths=["//depot/main/src/...", " //depot/main/src/... "],
    )

    assert operation.parameters == {
        "change": snapshot.change + 1,
        "paths": ["//depot/main/src/..."],
    }
    template.refresh_from_db()
    now = freshness_of(template)
    state = freshness.refresh_state_of(template, freshness=now)
    assert (state.tried, state.tried_at, state.clean_tried_at) == (0, None, None)


def test_a_workspace_of_parts_knows_its_mark(template: Template) -> None:
    snapshot = SnapshotFactory.create(template=template, parts=PART, quality="tested")

    assert (snapshot.mark, snapshot.part_change) == ("Tested, refreshed in part", 400)
    assert SnapshotFactory.create(template=template, change=7).part_change is None


def test_the_one_who_is_gone_pins_nothing(template: Template, alice: User) -> None:
    snapshot = SnapshotFactory.create(template=template)
    workspace = workspace_create(by=alice, template=template)
    set_workspace_state(workspace, Workspace.State.RETIRING)
    purge(workspace)

    pins = retention.pins_of_snapshot(snapshot)
    assert pins is not None
    assert pins.workspaces == []
    Snapshot.objects.filter(pk=snapshot.pk).update(
        deleted_at=timezone.now() - dt.timedelta(1)
    )
    assert retention.pins_of_snapshot(snapshot) is None
