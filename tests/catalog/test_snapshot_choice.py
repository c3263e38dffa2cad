"""Which snapshots people get: held, released, withdrawn, rolled back to, described."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import IntegrityError
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.audit_log.models import Event
from provisioner.bisect.actions import bisection_start
from provisioner.catalog import retention
from provisioner.catalog.actions.snapshots import snapshot_hold, snapshot_withdraw
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import RefreshPolicy, Snapshot, Template
from provisioner.catalog.queries import default_snapshot, snapshots_for_bisection
from provisioner.catalog.refusals import NoSnapshot
from provisioner.catalog.states import set_template_state
from provisioner.catalog.sweeps.refresh import refresh_all
from provisioner.engine.models import Operation
from provisioner.notify.models import Notification, Webhook, WebhookDelivery
from provisioner.notify.sweeps.mails import send_due
from provisioner.pools import queries as pool_queries
from provisioner.pools.sweeps import sweep_pools
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import default_to_move_to, snapshots_to_move_to
from provisioner.workspaces.states import set_workspace_state
from tests.support.behind import known_to_be_behind
from tests.support.browsers import browser_of
from tests.support.factories import SnapshotFactory, TemplateFactory, UserFactory
from tests.support.mail_server import BACKEND, Mailbox
from tests.support.requests import workspace_create
from tests.support.warm_pools import filled, make_pool
from tests.support.workspaces import end

pytestmark = pytest.mark.django_db
WHY = "The shaders are of the wrong branch."


@pytest.fixture
def older(template: Template, snapshot: Snapshot) -> Snapshot:
    """One of change 90 from before the newest."""
    made = SnapshotFactory.create(template=template, change=90)
    earlier = timezone.now() - dt.timedelta(hours=2)
    Snapshot.objects.filter(pk=made.pk).update(created_at=earlier)
    made.refresh_from_db()
    return made


@pytest.fixture
def owner(template: Template, alice: User) -> User:
    """Alice looks after the template, and is no administrator."""
    Template.objects.filter(pk=template.pk).update(owner=alice)
    template.owner = alice
    return alice


def changed_by(kind: str) -> list[str]:
    return list(Event.objects.filter(kind=kind).values_list("reason", flat=True))


# --- holding


def test_the_owner_holds_an_older_one_and_new_workspaces_get_it(
    owner: User, older: Snapshot, snapshot: Snapshot
) -> None:
    browser = browser_of(owner)
    address = f"/snapshots/{older.pk}/hold/"
    assert "Use this one" in browser.get(f"/templates/{older.template_id}/").text
    assert browser.post(address, {"reason": " "}).status_code == 422

    browser.post(address, {"reason": "The trade show runs on it."})

    assert default_snapshot(snapshot.template) == older
    assert workspace_create(by=owner, template=older.template).snapshot == older
    page = browser.get(f"/templates/{older.template_id}/").text
    assert "New workspaces get change 90 until it is released" in page
    assert "The trade show runs on it." in page
    assert changed_by("snapshot_held") == ["The trade show runs on it."]


def test_holding_twice_says_it_once_and_another_takes_its_place(
    admin: User, older: Snapshot, snapshot: Snapshot
) -> None:
    snapshot_hold(by=admin, snapshot=older, reason=WHY)
    snapshot_hold(by=admin, snapshot=older, reason=WHY)
    assert changed_by("snapshot_held") == [WHY]

    snapshot_hold(by=admin, snapshot=snapshot, reason="Better.")

    older.refresh_from_db()
    assert (older.held_at, older.held_by, older.hold_reason) == (None, None, "")
    assert default_snapshot(snapshot.template) == snapshot


def test_what_is_published_later_does_not_take_its_place_until_it_is_released(
    api_as_admin: APIClient, admin: User, snapshot: Snapshot
) -> None:
    address = f"/api/v1/snapshots/{snapshot.pk}"
    held = api_as_admin.post(f"{address}/hold", {"reason": WHY})
    assert (held.json()["held_by"], held.json()["hold_reason"]) == ("admin", WHY)
    later = SnapshotFactory.create(template=snapshot.template, change=101)
    assert default_snapshot(snapshot.template) == snapshot

    released = api_as_admin.post(f"{address}/release")
    again = api_as_admin.post(f"{address}/release")

    assert released.json()["held_at"] is None
    assert again.status_code == 200
    assert len(changed_by("snapshot_released")) == 1
    assert default_snapshot(snapshot.template) == later


def test_one_whose_test_failed_can_be_held_but_not_one_in_parts(
    api_as_admin: APIClient, template: Template
) -> None:
    failed = SnapshotFactory.create(template=template, quality="failed")
    parts = [{"path": "//depot/main/src/...", "change": 200}]
    partial = SnapshotFactory.create(template=template, parts=parts)

    said = {"reason": WHY}
    held = api_as_admin.post(f"/api/v1/snapshots/{failed.pk}/hold", said)
    refused = api_as_admin.post(f"/api/v1/snapshots/{partial.pk}/hold", said)

    assert held.status_code == 200
    assert (refused.status_code, refused.json()["code"]) == (409, "snapshot_in_parts")
    assert default_snapshot(template) == failed


def test_who_asks_for_tested_gets_tested_whatever_is_held(
    admin: User, template: Template
) -> None:
    tested = SnapshotFactory.create(template=template, quality="tested")
    built = SnapshotFactory.create(template=template, change=120)
    snapshot_hold(by=admin, snapshot=built, reason=WHY)
    assert default_snapshot(template) == built
    assert default_snapshot(template, quality="tested") == tested


def test_one_that_is_held_is_kept_and_says_so(
    admin: User, older: Snapshot, snapshot: Snapshot
) -> None:
    Template.objects.update(snapshots_to_keep=1)
    template = Template.objects.get()
    assert retention.superfluous(template) == [older]
    snapshot_hold(by=admin, snapshot=older, reason=WHY)

    assert retention.superfluous(template) == []
    assert not retention.mark_deleted(older)
    pins = retention.pins_of_snapshot(older)
    assert pins is not None
    assert pins.reasons == ["new workspaces are cloned from it until it is released"]


def test_the_database_holds_one_of_a_template_and_none_that_is_gone(
    admin: User, older: Snapshot, snapshot: Snapshot
) -> None:
    held = {"held_at": timezone.now(), "held_by": admin, "hold_reason": WHY}
    Snapshot.objects.filter(pk=older.pk).update(**held)
    with pytest.raises(IntegrityError, match="snapshot_held_can_be_had"):
        Snapshot.objects.filter(pk=older.pk).update(deleted_at=timezone.now())


def test_warm_pools_hold_members_of_what_is_held(
    admin: User, ci: User, older: Snapshot, snapshot: Snapshot
) -> None:
    pool = make_pool(snapshot.template, ci, size=1)
    (member,) = filled(pool)
    assert member.snapshot == snapshot

    snapshot_hold(by=admin, snapshot=older, reason=WHY)
    sweep_pools(timestamp=0)

    member.refresh_from_db()
    assert member.state == Workspace.State.RETIRING
    new = pool_queries.members_of(pool).get(state=Workspace.State.PROVISIONING)
    assert new.snapshot == older


def test_a_change_that_is_built_is_not_built_again_while_an_older_one_is_held(
    admin: User, older: Snapshot
) -> None:
    template = older.template
    set_template_state(template, Template.State.BUILDING)
    set_template_state(template, Template.State.READY)
    snapshot_hold(by=admin, snapshot=older, reason=WHY)
    known_to_be_behind(older, "bob")
    long_ago = timezone.now() - dt.timedelta(days=9)
    RefreshPolicy.objects.create(
        template=template, mode="cron", cron="* * * * *", changed_at=long_ago
    )
    now = timezone.now() + dt.timedelta(hours=1)
    changes = Template.objects.get().changes.values_list("number", flat=True)
    Snapshot.objects.exclude(pk=older.pk).update(change=max(changes))

    assert refresh_all(now=now) == 0
    Snapshot.objects.exclude(pk=older.pk).update(change=min(changes) - 1)
    assert refresh_all(now=now) == 1


# --- withdrawing


def test_withdrawing_says_whom_it_concerns_and_then_nobody_gets_it(
    owner: User, carol: User, older: Snapshot, snapshot: Snapshot
) -> None:
    workspace_create(by=carol, template=snapshot.template)
    browser = browser_of(owner)
    address = f"/snapshots/{snapshot.pk}/withdraw/"
    preview = browser.get(address).text
    assert 'New workspaces get change <span class="change">90</span>' in preview
    assert "1 workspace stays" in preview

    browser.post(address, {"reason": WHY})

    assert default_snapshot(snapshot.template) == older
    page = browser.get(f"/templates/{snapshot.template_id}/").text
    assert "Withdrawn by alice" in page
    assert WHY in page
    choice = browser.get(f"/templates/{snapshot.template_id}/get/").text
    assert "Change 100" not in choice
    refused = browser.post(
        f"/templates/{snapshot.template_id}/get/", {"snapshot": snapshot.pk}
    )
    assert refused.status_code == 422
    assert changed_by("snapshot_withdrawn") == [WHY]


def test_scripts_that_name_a_withdrawn_one_are_told_why(
    api_as_alice: APIClient, admin: User, older: Snapshot, snapshot: Snapshot
) -> None:
    snapshot_withdraw(by=admin, snapshot=snapshot, reason=WHY)
    snapshot_withdraw(by=admin, snapshot=snapshot, reason="Another reason.")

    asked = {"template": snapshot.template.name, "snapshot": snapshot.pk}
    refused = api_as_alice.post("/api/v1/workspaces", asked)

    assert (refused.status_code, refused.json()["code"]) == (409, "snapshot_withdrawn")
    assert WHY in refused.json()["detail"]
    shown = api_as_alice.get(f"/api/v1/snapshots/{snapshot.pk}").json()
    assert (shown["withdrawn_by"], shown["withdraw_reason"]) == ("admin", WHY)
    assert changed_by("snapshot_withdrawn") == [WHY]


def test_one_that_was_held_is_released_and_cannot_be_held_again(
    api_as_admin: APIClient, admin: User, snapshot: Snapshot
) -> None:
    snapshot_hold(by=admin, snapshot=snapshot, reason=WHY)
    address = f"/api/v1/snapshots/{snapshot.pk}"

    gone = api_as_admin.post(f"{address}/withdraw", {"reason": WHY}).json()
    refused = api_as_admin.post(f"{address}/hold", {"reason": WHY})

    assert gone["held_at"] is None
    assert (refused.status_code, refused.json()["code"]) == (409, "snapshot_withdrawn")


def test_members_of_pools_are_replaced_and_none_is_claimed_meanwhile(
    admin: User, ci: User, older: Snapshot, snapshot: Snapshot
) -> None:
    pool = make_pool(snapshot.template, ci, size=1)
    (member,) = filled(pool)
    snapshot_withdraw(by=admin, snapshot=snapshot, reason=WHY)

    got = workspace_create(by=ci, template=snapshot.template, purpose="ci")
    sweep_pools(timestamp=0)

    assert (got.is_warm, got.snapshot) == (False, older)
    member.refresh_from_db()
    assert member.state == Workspace.State.RETIRING


def test_bisections_and_transfers_do_without_it(
    admin: User, alice: User, older: Snapshot, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=older.template, snapshot=older)
    assert default_to_move_to(workspace) == snapshot

    snapshot_withdraw(by=admin, snapshot=snapshot, reason=WHY)

    assert snapshots_for_bisection(snapshot.template) == [older]
    assert not snapshots_to_move_to(workspace).exists()
    assert default_to_move_to(workspace) is None
    snapshot_withdraw(by=admin, snapshot=older, reason=WHY)
    with pytest.raises(NoSnapshot):
        bisection_start(by=alice, template=older.template, good=1, bad=90)


def test_a_transfer_recommends_what_is_held_or_nothing(
    admin: User, alice: User, older: Snapshot, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=older.template, snapshot=older)
    snapshot_hold(by=admin, snapshot=older, reason=WHY)
    assert default_to_move_to(workspace) is None
    assert list(snapshots_to_move_to(workspace)) == [snapshot]


def test_it_is_deleted_once_no_workspace_needs_it(
    admin: User, alice: User, older: Snapshot, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)
    snapshot_withdraw(by=admin, snapshot=snapshot, reason=WHY)
    template = snapshot.template
    assert retention.superfluous(template) == []
    Workspace.objects.filter(pk=workspace.pk).update(
        state=Workspace.State.RETIRED, retired_at=timezone.now()
    )
    assert retention.superfluous(template) == [snapshot]


def test_who_has_it_is_told_by_mail_and_on_the_page(
    admin: User, carol: User, ci: User, snapshot: Snapshot, settings: object
) -> None:
    settings.EMAIL_BACKEND = BACKEND  # type: ignore[attr-defined]
    Mailbox.empty()
    User.objects.filter(pk=carol.pk).update(email="carol@example.com")
    workspace = workspace_create(by=carol, template=snapshot.template, name="mine")
    workspace_create(by=ci, template=snapshot.template, purpose="ci")
    end(workspace.operations.get(), Operation.State.SUCCEEDED)
    set_workspace_state(workspace, Workspace.State.READY)
    hook = Webhook.objects.create(
        owner=carol, url="https://hooks.example/", events=["snapshot.withdrawn"]
    )

    snapshot_withdraw(by=admin, snapshot=snapshot, reason=WHY)
    send_due(now=timezone.now())

    kind = Notification.Kind.SNAPSHOT_WITHDRAWN
    assert Notification.objects.get(kind=kind).workspace == workspace
    assert Mailbox.subjects() == ["The snapshot of mine was withdrawn"]
    assert WHY in str(Mailbox.delivered[0][1].body)
    assert WHY in WebhookDelivery.objects.get(webhook=hook).body
    page = browser_of(carol).get(f"/workspaces/{workspace.pk}/").text
    assert "Its snapshot was withdrawn by admin" in page
    assert WHY in page


# --- a label, notes


def test_label_and_notes_are_shown_and_changed_apart(
    owner: User, api_as_admin: APIClient, snapshot: Snapshot
) -> None:
    browser = browser_of(owner)
    browser.post(
        f"/snapshots/{snapshot.pk}/describe/",
        {"label": "Alpha 3", "notes": "Known:\r\n<b>slow</b> shaders"},
    )
    address = f"/api/v1/snapshots/{snapshot.pk}"
    assert api_as_admin.patch(address, {"label": "Beta"}).json()["label"] == "Beta"
    assert api_as_admin.patch(address, {"label": "Beta"}).status_code == 200
    assert api_as_admin.patch(address, {"label": "a\nb"}).status_code == 400

    page = browser.get(f"/templates/{snapshot.template_id}/").text

    assert "Beta" in page
    assert "&lt;b&gt;slow&lt;/b&gt; shaders" in page
    assert Event.objects.filter(kind="snapshot_described").count() == 2
    choice = browser.get(f"/templates/{snapshot.template_id}/get/").text
    assert "Beta" in choice


# --- rolling back


def failed_build(template: Template, by: User) -> Operation:
    build = template_build(by=by, template=template)
    end(build, Operation.State.FAILED, code="build_failed", message="It is broken.")
    set_template_state(template, Template.State.FAILED, code="x", message="Broken.")
    return build


def test_a_failed_build_is_rolled_back_in_one_click(
    owner: User, admin: User, snapshot: Snapshot
) -> None:
    template = snapshot.template
    build = failed_build(template, admin)
    browser = browser_of(owner)
    page = browser.get(f"/templates/{template.pk}/").text
    assert "Roll back to change 100" in page
    later = SnapshotFactory.create(template=template, change=120)

    answer = browser.post(f"/templates/{template.pk}/roll-back/", {"build": build.pk})

    assert answer.headers["Location"].endswith(f"#snapshot-{snapshot.pk}")
    assert default_snapshot(template) == snapshot != later
    snapshot.refresh_from_db()
    assert snapshot.hold_reason == f"The build failed (operation {build.pk})."
    browser.post(f"/templates/{template.pk}/roll-back/", {"build": build.pk})
    assert len(changed_by("snapshot_held")) == 1


def test_scripts_roll_back_the_newest_build_where_there_is_something(
    api_as_admin: APIClient, admin: User, template: Template
) -> None:
    address = f"/api/v1/templates/{template.pk}/roll-back"
    assert api_as_admin.post(address, {}).status_code == 400
    failed_build(template, admin)
    refused = api_as_admin.post(address, {})
    assert refused.json()["code"] == "nothing_to_roll_back_to"
    made = SnapshotFactory.create(template=template)
    early = timezone.now() - dt.timedelta(hours=1)
    Snapshot.objects.filter(pk=made.pk).update(created_at=early)
    assert api_as_admin.post(address, {}).json()["id"] == made.pk


def test_only_a_build_of_its_own_that_failed_is_rolled_back(
    as_admin: Client, admin: User, snapshot: Snapshot
) -> None:
    other = failed_build(TemplateFactory.create(), admin)
    running = template_build(by=admin, template=snapshot.template)
    address = f"/templates/{snapshot.template_id}/roll-back/"
    for number in (other.pk, running.pk, "x"):
        as_admin.post(address, {"build": number})
    assert not Snapshot.objects.filter(held_at__isnull=False).exists()


# --- who may


def test_a_stranger_sees_but_does_not_decide(
    as_carol: Client, api_as_carol: APIClient, as_nobody: Client, snapshot: Snapshot
) -> None:
    page = as_carol.get(f"/templates/{snapshot.template_id}/").text
    assert "Use this one" not in page
    for verb in ("hold", "withdraw", "describe", "release"):
        address = f"/snapshots/{snapshot.pk}/{verb}/"
        assert as_carol.post(address, {"reason": WHY}).status_code == 403
        assert "/login/" in as_nobody.post(address).headers["Location"]
    refused = api_as_carol.post(
        f"/api/v1/snapshots/{snapshot.pk}/hold", {"reason": "a"}
    )
    assert refused.json()["code"] == "not_allowed"


def test_a_closed_account_looks_after_nothing(template: Template) -> None:
    owner = UserFactory.create(is_active=False)
    Template.objects.filter(pk=template.pk).update(owner=owner)
    snapshot = SnapshotFactory.create(template=Template.objects.get())
    with pytest.raises(Exception, match="may not"):
        snapshot_hold(by=owner, snapshot=snapshot, reason=WHY)
