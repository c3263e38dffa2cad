"""The pages of mirrors, and what the page of a template says of them."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot, Template
from provisioner.engine import states as engine_states
from provisioner.engine.models import Operation, Step
from provisioner.engine.subjects import Failure
from provisioner.lib import clocks
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.mirrors.overviews import overviews_of
from provisioner.mirrors.queries import mirrors_visible_to
from provisioner.mirrors.workflows import _fail
from provisioner.workspaces.models import Workspace
from tests.support.browsers import browser_of
from tests.support.factories import (
    MirroredSnapshotFactory,
    MirrorFactory,
    SiteFactory,
    SnapshotFactory,
)


def page_of(mirror: Mirror, name: str = "mirror-detail") -> str:
    return reverse(name, args=[mirror.pk])


@pytest.fixture
def mirror(snapshot: Snapshot) -> Mirror:
    """A mirror with the snapshot; what was published later is not there."""
    made = MirrorFactory.create(template=snapshot.template, site__name="bangalore")
    MirroredSnapshotFactory.create(mirror=made, snapshot=snapshot)
    return made


@pytest.fixture
def later(snapshot: Snapshot) -> Snapshot:
    return SnapshotFactory.create(
        template=snapshot.template, name="c120.b9", change=120
    )


def test_a_mirror_is_created_where_it_fits(
    as_admin: Client, template: Template, connectable: None
) -> None:
    home = template.site
    fit = SiteFactory.create(
        name="bangalore", perforce_server=home.perforce_server, svm="svm_far"
    )
    SiteFactory.create(name="here", perforce_server=home.perforce_server, svm=home.svm)
    SiteFactory.create(name="elsewhere")
    assert "No template is mirrored" in as_admin.get(reverse("mirror-list")).text
    create = f"{reverse('mirror-create')}?template={template.pk}"
    assert create in as_admin.get(f"/templates/{template.pk}/?more=1").text

    offered = as_admin.get(create).text

    assert "already at" in offered
    assert "are on the same SVM" in offered
    assert "uses another Perforce installation" in offered
    assert f'<option value="{fit.pk}">' in offered
    form = {"site": fit.pk, "start": "by-hand", "throttle_kilobytes": 5000, "keep": 3}
    made = as_admin.post(create, form, follow=True).text
    mirror = Mirror.objects.get()
    assert (mirror.start, mirror.throttle_kilobytes, mirror.keep) == (
        *("by-hand", 5000),
        3,
    )
    assert "Being created" in made
    assert "0 of 3 steps done" in made
    assert "5,000 kB per second" in made
    assert "already has a mirror" in as_admin.get(create).text
    again = as_admin.post(create, form)
    assert (again.status_code, Mirror.objects.count()) == (422, 1)


def test_the_template_is_chosen_first(as_admin: Client, template: Template) -> None:
    chooses = as_admin.get(reverse("mirror-create"))
    wrong = as_admin.get(f"{reverse('mirror-create')}?template=x")

    assert template.name in chooses.text
    assert (chooses.status_code, wrong.status_code) == (200, 422)


def test_the_list_and_both_pages_say_how_far_it_is_behind(
    as_carol: Client, mirror: Mirror, later: Snapshot
) -> None:
    Mirror.objects.update(trouble="The relationship is paused.")

    for address in (
        "/mirrors/",
        f"/templates/{mirror.template_id}/?more=1",
        page_of(mirror),
    ):
        page = as_carol.get(address).text
        assert "1 snapshot behind" in page, address
        assert "Create a mirror" not in page
        assert "Transfer now" not in page
    assert "The relationship is paused." in page
    assert mirror.volume_path in page
    assert "cloneyard-keep-10" in page
    table = as_carol.get("/mirrors/?as=csv").getvalue().decode()
    assert "bangalore" in table
    assert not as_carol.get("/mirrors/?q=nowhere").text.count("bangalore")
    assert "4.0 KiB" not in as_carol.get(f"{page_of(mirror)}?q=nowhere").text

    MirroredSnapshotFactory.create(mirror=mirror, snapshot=later)

    assert "Up to date" in as_carol.get(page_of(mirror)).text


def test_an_owner_transfers_and_an_administrator_does_the_rest(
    alice: User, as_admin: Client, as_carol: Client, mirror: Mirror, later: Snapshot
) -> None:
    Template.objects.update(owner=alice)
    as_owner = browser_of(alice)
    shown = as_owner.get(page_of(mirror)).text
    assert "Transfer now…" in shown
    assert "Delete…" not in shown
    transfer = page_of(mirror, "mirror-transfer")
    assert as_carol.get(transfer).status_code == 403
    form = as_owner.get(transfer).text
    assert "Latest (recommended): change 120" in form

    under_way = as_owner.post(transfer, {"snapshot": ""}, follow=True).text

    assert "Transferring a snapshot" in under_way
    assert page_of(mirror, "mirror-progress") in under_way
    assert mirror.snapshots.get(snapshot=later).state == "transferring"
    busy = as_owner.post(transfer, {"snapshot": ""})
    assert busy.status_code == 409
    assert "Something is under way" in busy.text


def test_progress_is_polled_until_the_transfer_has_ended(
    as_admin: Client, mirror: Mirror, later: Snapshot
) -> None:
    as_admin.post(page_of(mirror, "mirror-transfer"), {"snapshot": later.pk})
    operation = mirror.operations.get()
    operation.steps.filter(name="transfer").update(
        state=Step.State.RUNNING,
        started_at=clocks.database_now(),
        progress={"done": 2048, "unit": "bytes", "text": "2 KiB, 1 KiB a second"},
    )
    progress = page_of(mirror, "mirror-progress")
    htmx = {"HX-Request": "true"}

    part = as_admin.get(progress, headers=htmx).text

    assert "1 KiB a second" in part
    assert "<html" not in part
    assert reverse("operation-detail", args=[operation.pk]) in part
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    ended = as_admin.get(progress, headers=htmx)
    assert ended.headers["HX-Refresh"] == "true"
    assert as_admin.get(progress).status_code == 302


def test_a_failure_says_why_and_is_retried(
    as_admin: Client, as_carol: Client, mirror: Mirror, later: Snapshot
) -> None:
    as_admin.post(page_of(mirror, "mirror-transfer"), {"snapshot": later.pk})
    engine_states.end_operation(mirror.operations.get(), Operation.State.FAILED)
    mirror.refresh_from_db()
    _fail(mirror, Failure("mirror_destination_full", "The volume has no room."))

    page = as_admin.get(page_of(mirror)).text

    assert "The last transfer failed" in page
    assert "The volume has no room." in page
    assert "tries again every ten minutes" in page
    retry = page_of(mirror, "mirror-retry")
    assert retry not in as_carol.get(page_of(mirror)).text
    assert as_carol.post(retry).status_code == 403
    as_admin.post(retry)
    mirror.refresh_from_db()
    assert mirror.state == Mirror.State.CREATING


def test_what_a_storage_administrator_has_repaired_is_retried(
    as_admin: Client, as_carol: Client, mirror: Mirror
) -> None:
    Mirror.objects.update(trouble="The relationship is paused. Then retry.")
    retry = page_of(mirror, "mirror-retry")
    assert retry not in as_carol.get(page_of(mirror)).text
    assert retry in as_admin.get(page_of(mirror)).text

    as_admin.post(retry)

    mirror.refresh_from_db()
    assert mirror.state == Mirror.State.CREATING


def test_settings_are_changed_and_wrong_ones_are_said_at_the_form(
    as_admin: Client, mirror: Mirror
) -> None:
    edit = page_of(mirror, "mirror-edit")
    wrong = as_admin.post(
        edit, {"start": "by-hand", "throttle_kilobytes": "-1", "keep": "10"}
    )
    assert wrong.status_code == 422

    as_admin.post(edit, {"start": "by-hand", "throttle_kilobytes": "100", "keep": "10"})

    mirror.refresh_from_db()
    assert (mirror.start, mirror.throttle_kilobytes) == ("by-hand", 100)
    log = as_admin.get(reverse("audit-log")).text
    assert page_of(mirror) in log
    scheduled = {"start": "schedule", "throttle_kilobytes": "100", "keep": "10"}
    none = as_admin.post(edit, scheduled)
    assert none.status_code == 409
    assert "A schedule is missing" in none.text

    as_admin.post(edit, {**scheduled, "cron": "0 3  * * mon-fri"})

    assert "On the schedule 0 3 * * mon-fri (UTC)" in as_admin.get(page_of(mirror)).text


def test_a_deletion_says_what_goes_and_a_deleted_mirror_keeps_its_page(
    as_admin: Client, mirror: Mirror
) -> None:
    delete = page_of(mirror, "mirror-delete")
    page = as_admin.get(delete).text
    assert "1 snapshot and the volume" in page
    assert mirror.volume_path in page

    under_way = as_admin.post(delete, follow=True).text

    assert "Being deleted" in under_way
    assert as_admin.post(delete).status_code == 409
    operation = mirror.operations.get()
    shown = as_admin.get(reverse("operation-detail", args=[operation.pk])).text
    assert page_of(mirror) in shown
    engine_states.end_operation(operation, Operation.State.SUCCEEDED)
    Mirror.objects.update(state=Mirror.State.DELETED)
    gone = as_admin.get(page_of(mirror))
    assert "This mirror was deleted" in gone.text
    assert "Edit" not in gone.text.split("<main")[1]
    assert as_admin.get(delete).status_code == 404
    assert not as_admin.get("/mirrors/").text.count("bangalore")


def test_a_list_takes_as_many_queries_for_many_mirrors(
    admin: User, mirror: Mirror, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for _ in range(2):
        MirroredSnapshotFactory.create()
    mirrors = list(mirrors_visible_to(admin))

    with django_assert_num_queries(7):  # and more where anything is under way
        overviews = overviews_of(mirrors)
        assert {each.behind for each in overviews} == {"Up to date"}


def test_the_palette_finds_mirrors(as_carol: Client, mirror: Mirror) -> None:
    assert page_of(mirror) in as_carol.get("/palette/?q=bangalore").text
    assert reverse("mirror-list") in as_carol.get("/palette/?q=mirrors").text


def test_a_promotion_is_previewed_and_confirmed(
    as_admin: Client, workspace: Workspace, mirror: Mirror, later: Snapshot
) -> None:
    assert page_of(mirror, "mirror-promote") in as_admin.get(page_of(mirror)).text

    shown = as_admin.get(page_of(mirror, "mirror-promote")).text

    assert f"{workspace.name} of {workspace.owner.username}" in shown
    assert later.name in shown
    assert "1 snapshot behind" in shown
    Template.objects.update(state=Template.State.BUILDING)
    refused = as_admin.post(page_of(mirror, "mirror-promote"))
    assert refused.status_code == 409
    assert "is being built, moved, resized or deleted" in refused.text
    Template.objects.update(state=Template.State.READY)
    done = as_admin.post(page_of(mirror, "mirror-promote"), follow=True).text
    assert "Being promoted" in done
    builds = f"/templates/{mirror.template_id}/build/"
    assert "is moving to bangalore" in as_admin.post(builds, follow=True).text


def test_a_copy_that_nobody_could_build_in_is_not_promoted(
    as_admin: Client, mirror: Mirror
) -> None:
    mirror.site.template_uid = 1234
    mirror.site.save()

    shown = as_admin.get(page_of(mirror, "mirror-promote")).text

    assert "builds as uid 1234" in shown
    refused = as_admin.post(page_of(mirror, "mirror-promote"))
    assert refused.status_code == 409


def test_a_former_home_is_re_established_or_given_up(
    as_admin: Client, as_carol: Client, mirror: Mirror, later: Snapshot
) -> None:
    MirroredSnapshotFactory.create(
        mirror=mirror, snapshot=later, state=MirroredSnapshot.State.ONLY_THERE
    )
    Mirror.objects.update(state=Mirror.State.FORMER, is_former_home=True)
    page = as_admin.get(page_of(mirror)).text
    assert "was the home of the template" in page
    assert "Delete…" not in page
    assert "Re-establish…" not in as_carol.get(page_of(mirror)).text
    shown = as_admin.get(page_of(mirror, "mirror-reestablish")).text
    assert later.name in shown
    assert (
        "stay until you delete" in as_admin.get(page_of(mirror, "mirror-give-up")).text
    )
    deleted = as_admin.post(page_of(mirror, "mirror-delete"))
    assert deleted.status_code == 409

    begun = as_admin.post(page_of(mirror, "mirror-reestablish"), follow=True).text

    assert "Being re-established" in begun
    mirror.refresh_from_db()
    _fail(mirror, Failure(code="mirror_not_resynced", message="No."))
    failed = as_admin.get(page_of(mirror)).text
    assert "The former home could not be re-established" in failed
    assert page_of(mirror, "mirror-give-up") in failed


def test_clones_of_what_would_be_discarded_prevent_a_way_back(
    as_admin: Client, workspace: Workspace, mirror: Mirror
) -> None:
    Workspace.objects.update(site=mirror.site)
    mirror.snapshots.update(state=MirroredSnapshot.State.ONLY_THERE)
    Mirror.objects.update(state=Mirror.State.FORMER, is_former_home=True)

    refused = as_admin.post(page_of(mirror, "mirror-reestablish"))

    assert refused.status_code == 409
    assert f"are clones of {workspace.snapshot.name}" in refused.text
