"""The life of a template: renamed, handed over, archived, deleted."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import IntegrityError
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.accounts.system import system_user
from provisioner.audit_log.models import Event
from provisioner.bisect.actions import bisection_start
from provisioner.catalog.actions.lifecycle import (
    template_archive,
    template_delete,
    template_unarchive,
)
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import (
    RefreshPolicy,
    Snapshot,
    Template,
    TemplateWatch,
    VolumePolicy,
)
from provisioner.catalog.refusals import (
    TemplateArchived,
    TemplateBusy,
    TemplateNeeded,
)
from provisioner.catalog.states import set_template_state
from provisioner.catalog.sweeps.refresh import refresh_all
from provisioner.catalog.sweeps.watch import templates_of
from provisioner.engine.models import Operation
from provisioner.gateways import registry
from provisioner.gateways.ontap.types import CloneSpec
from provisioner.leases.models import LeasePolicy
from provisioner.lib.refusals import NotAllowed
from provisioner.notify.models import Subscription
from provisioner.pools.actions import pool_create
from provisioner.pools.models import Pool
from provisioner.pools.sweeps import sweep_pools
from provisioner.storage.actions import volume_policy_save
from provisioner.workspaces.models import Workspace
from tests.support.behind import known_to_be_behind
from tests.support.browsers import browser_of
from tests.support.factories import SnapshotFactory, TemplateFactory, UserFactory
from tests.support.requests import workspace_create
from tests.support.warm_pools import filled, make_pool

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(template: Template, alice: User) -> User:
    """Alice looks after the template, and is no administrator."""
    Template.objects.filter(pk=template.pk).update(owner=alice)
    template.owner = alice
    return alice


def said(kind: str) -> list[str]:
    return list(Event.objects.filter(kind=kind).values_list("message", flat=True))


# --- its title and its owner


def test_the_owner_gives_it_a_title_that_pages_and_the_palette_know(
    owner: User, snapshot: Snapshot
) -> None:
    browser, pk = browser_of(owner), snapshot.template_id
    browser.post(f"/templates/{pk}/rename/", {"title": "Main line, Linux"})
    browser.post(f"/templates/{pk}/rename/", {"title": "Main line, Linux"})

    page = browser.get(f"/templates/{pk}/").text
    assert "<h1>Main line, Linux</h1>" in page
    assert "<code>main</code>" in page, "what scripts call it"
    assert "Main line, Linux</a>" in browser.get("/templates/?q=linux").text
    assert "Main line, Linux" in browser.get("/palette/?q=linux").text
    assert said("template_renamed") == ["Titled “Main line, Linux”."]
    assert Template.objects.get().name == "main"


def test_it_is_handed_over_and_the_one_before_decides_no_more(
    owner: User, carol: User, snapshot: Snapshot
) -> None:
    browser, pk = browser_of(owner), snapshot.template_id
    choices = browser.get(f"/templates/{pk}/owner/").text
    assert "carol" in choices
    assert system_user().username not in choices

    browser.post(f"/templates/{pk}/owner/", {"owner": carol.pk})

    assert Template.objects.get().owner == carol
    assert said("template_handed_over") == ["Its owner is carol now, and was alice."]
    assert browser.get(f"/templates/{pk}/rename/").status_code == 403
    assert browser_of(carol).get(f"/templates/{pk}/rename/").status_code == 200


def test_scripts_rename_it_and_change_its_owner_together_or_not_at_all(
    api_as_admin: APIClient, carol: User, template: Template
) -> None:
    address = f"/api/v1/templates/{template.pk}"
    refused = api_as_admin.patch(address, {"title": "Main", "owner": "nobody-here"})
    assert refused.status_code == 400
    assert Template.objects.get().title == ""

    changed = api_as_admin.patch(address, {"title": "Main", "owner": "carol"}).json()

    assert (changed["title"], changed["owner"]) == ("Main", "carol")
    closed = UserFactory.create(username="closed", is_active=False)
    assert api_as_admin.patch(address, {"owner": "closed"}).status_code == 409
    assert Template.objects.get().owner != closed


# --- archiving


def test_an_archived_one_gives_no_new_workspaces_and_existing_ones_live_on(
    owner: User, carol: User, api_as_carol: APIClient, snapshot: Snapshot
) -> None:
    template = snapshot.template
    before = workspace_create(by=carol, template=template)
    browser, address = browser_of(owner), f"/templates/{template.pk}/"
    assert "existing ones stay" in browser.get(f"{address}archive/").text.lower()

    browser.post(f"{address}archive/", {"reason": "Use release-42."})
    browser.post(f"{address}archive/", {"reason": "Another reason."})

    page = browser.get(address).text
    assert "Archived by alice" in page
    assert "Ready</span>" not in page.partition("</header>")[0]
    assert "Use release-42." in page
    assert f"/templates/{template.pk}/get/" not in page
    asked = {"template": "main"}
    refused = api_as_carol.post("/api/v1/workspaces", asked)
    assert (refused.status_code, refused.json()["code"]) == (409, "template_archived")
    assert browser.post(f"{address}get/").status_code == 409
    assert browser_of(carol).get(f"/workspaces/{before.pk}/").status_code == 200
    assert len(said("template_archived")) == 1

    browser.post(f"{address}unarchive/")
    browser.post(f"{address}unarchive/")

    assert len(said("template_unarchived")) == 1
    assert api_as_carol.post("/api/v1/workspaces", asked).status_code == 202


def test_a_repeated_request_gets_what_it_got_before_the_archive(
    admin: User, ci: User, snapshot: Snapshot
) -> None:
    first = workspace_create(by=ci, template=snapshot.template, request_key="k")
    template = template_archive(by=admin, template=snapshot.template)
    assert workspace_create(by=ci, template=template, request_key="k") == first


def test_lists_and_home_leave_it_out_until_it_is_asked_for(
    as_carol: Client, api_as_carol: APIClient, admin: User, snapshot: Snapshot
) -> None:
    TemplateFactory.create(name="other", site=snapshot.template.site)
    template_archive(by=admin, template=snapshot.template)
    link = f'href="/templates/{snapshot.template_id}/"'

    assert link not in as_carol.get("/templates/").text
    assert link in as_carol.get("/templates/?archived=only").text
    assert f"/templates/{snapshot.template_id}/get/" not in as_carol.get("/").text
    assert "archived template" in as_carol.get("/palette/?q=main").text
    names = {
        which: {
            row["name"]
            for row in api_as_carol.get(
                "/api/v1/templates", {"archived": which}
            ).json()["results"]
        }
        for which in ("no", "only", "all")
    }
    assert names == {"no": {"other"}, "only": {"main"}, "all": {"main", "other"}}
    assert api_as_carol.get(f"/api/v1/templates/{snapshot.template_id}").json()[
        "archived_by"
    ] == ("admin")


def test_it_is_not_built_refreshed_or_followed_while_it_is_archived(
    admin: User, snapshot: Snapshot
) -> None:
    template = snapshot.template
    set_template_state(template, Template.State.BUILDING)
    set_template_state(template, Template.State.READY)
    known_to_be_behind(snapshot, "bob")
    RefreshPolicy.objects.create(
        template=template,
        mode="on_change",
        quiet_seconds=0,
        every_seconds=0,
        changed_at=timezone.now(),
    )
    server = template.site.perforce_server_id
    assert templates_of(server)

    template_archive(by=admin, template=template)

    assert refresh_all(now=timezone.now()) == 0
    assert templates_of(server) == []
    assert not TemplateWatch.objects.exists()
    with pytest.raises(TemplateArchived):
        template_build(by=admin, template=template)
    with pytest.raises(TemplateArchived):
        bisection_start(by=admin, template=Template.objects.get(), good=1, bad=9)


def test_its_warm_pools_are_emptied_and_filled_again(
    admin: User, ci: User, snapshot: Snapshot
) -> None:
    template = snapshot.template
    pool = make_pool(template, ci, size=1)
    (member,) = filled(pool)
    template_archive(by=admin, template=template)

    sweep_pools(timestamp=0)

    member.refresh_from_db()
    pool.refresh_from_db()
    assert member.state == Workspace.State.RETIRING
    assert pool.status_message == "The template is archived."
    with pytest.raises(TemplateArchived):
        pool_create(
            by=admin,
            template=Template.objects.get(),
            purpose="build",
            owner=ci,
            size=1,
        )
    template_unarchive(by=admin, template=template)
    sweep_pools(timestamp=0)
    assert pool.workspaces.filter(state=Workspace.State.PROVISIONING).exists()


def test_the_database_knows_who_archived_it(template: Template) -> None:
    with pytest.raises(IntegrityError, match="template_archived_by_somebody"):
        Template.objects.update(archived_at=timezone.now())


# --- deleting


def test_the_preview_says_what_needs_it_and_nothing_is_deleted(
    as_admin: Client, api_as_admin: APIClient, carol: User, ci: User, snapshot: Snapshot
) -> None:
    template = snapshot.template
    workspace_create(by=carol, template=template, name="carols-own")
    make_pool(template, ci, size=1)
    bisection_start(by=carol, template=template, good=1, bad=9)
    Subscription.objects.create(template=template, user=carol)
    address = f"/templates/{template.pk}/delete/"

    page = as_admin.get(address).text
    needs = api_as_admin.get(f"/api/v1/templates/{template.pk}/needs").json()
    refused = as_admin.post(address)

    assert "1 workspace: carols-own" in page
    assert "1 warm pool" in page
    assert "1 bisection under way" in page
    assert needs["can_be_deleted"] is False
    assert {found["what"] for found in needs["needed_by"]} == {
        "workspaces",
        "warm pools",
        "bisections under way",
    }
    assert [found["what"] for found in needs["goes_with"]] == [
        "subscriptions to its mails"
    ]
    assert refused.status_code == 409
    assert Template.objects.get().state == Template.State.NEW
    assert Snapshot.objects.filter(deleted_at=None).exists()


def test_what_refers_to_it_goes_and_history_stays(
    as_admin: Client, admin: User, carol: User, snapshot: Snapshot
) -> None:
    template = snapshot.template
    Subscription.objects.create(template=template, user=carol)
    LeasePolicy.objects.create(template=template, purpose="ci")

    as_admin.post(f"/templates/{template.pk}/delete/", {"reason": "Nobody uses it."})
    again = template_delete(by=admin, template=template)

    row = Template.objects.get()
    assert (row.state, row.is_archived) == (Template.State.DELETING, True)
    assert row.archive_reason == "Nobody uses it."
    assert again == row.operations.get()
    assert not Snapshot.objects.filter(deleted_at=None).exists()
    assert not Subscription.objects.exists()
    assert not LeasePolicy.objects.filter(template=template).exists()
    [deleting] = said("template_deleting")
    assert "1 subscription to its mails" in deleting
    page = as_admin.get(f"/templates/{template.pk}/").text
    assert "Deleting: 0 of 5 steps done" in page
    with pytest.raises(TemplateBusy):
        template_unarchive(by=admin, template=template)


def test_one_that_is_built_is_not_deleted_meanwhile(
    admin: User, template: Template
) -> None:
    template_build(by=admin, template=template)
    with pytest.raises(TemplateBusy):
        template_delete(by=admin, template=template)


def test_its_owner_archives_but_does_not_delete(
    owner: User, template: Template
) -> None:
    page = browser_of(owner).get(f"/templates/{template.pk}/").text
    assert "Archive…" in page
    assert "Delete…" not in page
    with pytest.raises(NotAllowed):
        template_delete(by=owner, template=template)


def test_strangers_and_nobody_change_nothing(
    as_carol: Client, as_nobody: Client, template: Template
) -> None:
    for verb in ("rename", "owner", "archive", "unarchive", "delete"):
        address = f"/templates/{template.pk}/{verb}/"
        assert as_carol.post(address).status_code == 403
        assert "/login/" in as_nobody.post(address).headers["Location"]


@pytest.mark.django_db(transaction=True)
def test_volume_and_client_go_and_the_name_is_free(
    built_template: Template, run_jobs: Callable[[], None], admin: User
) -> None:
    template, site = built_template, built_template.site
    retired = workspace_create(by=admin, template=template)
    run_jobs()
    with pytest.raises(TemplateNeeded):
        template_delete(by=admin, template=template)
    browser = browser_of(admin)
    browser.post(f"/workspaces/{retired.pk}/retire/", {"unsubmitted": "discard"})
    run_jobs()
    browser.post(f"/workspaces/{retired.pk}/purge/")
    run_jobs()
    volume_policy_save(by=admin, site=site, template=template, min_inodes=5000)

    operation = template_delete(by=admin, template=template)
    run_jobs()

    operation.refresh_from_db()
    assert operation.state == Operation.State.SUCCEEDED, operation.status_message
    assert registry.ontap(site).find_volume(template.volume_name) is None
    perforce = registry.perforce(site.perforce_server)
    assert perforce.clients.find(template.client_name) is None
    assert not Template.objects.exists()
    assert not VolumePolicy.objects.exists()
    assert Template.with_deleted.get().state == Template.State.DELETED
    for address in (
        f"/templates/{template.pk}/",
        f"/operations/{operation.pk}/",
        f"/workspaces/{retired.pk}/",
        "/operations/",
        "/retired/",
    ):
        assert browser.get(address).status_code == 200, address
    assert "This template was deleted" in browser.get(f"/templates/{template.pk}/").text
    assert browser.get(f"/templates/{template.pk}/edit/").status_code == 404
    TemplateFactory.create(site=site, name=template.name)


@pytest.mark.django_db(transaction=True)
def test_clones_of_others_stop_it_before_anything_goes_and_it_is_asked_again(
    built_template: Template, run_jobs: Callable[[], None], admin: User
) -> None:
    template = built_template
    ontap = registry.ontap(template.site)
    clone = ontap.create_clone(
        CloneSpec(
            name=f"foreign_{template.tag.hex[:6]}x",
            parent_volume=template.volume_name,
            parent_snapshot=template.snapshots.get().name,
            comment="somebody else's",
            uid=None,
            gid=None,
        )
    )
    template_delete(by=admin, template=template)
    run_jobs()

    template.refresh_from_db()
    assert (template.state, template.status_code) == (
        Template.State.FAILED,
        "has_clones",
    )
    perforce = registry.perforce(template.site.perforce_server)
    assert perforce.clients.find(template.client_name) is not None
    page = browser_of(admin).get(f"/templates/{template.pk}/").text
    assert "It could not be deleted" in page
    ontap.delete_volume(clone.uuid, force=True)

    template_delete(by=admin, template=template)
    run_jobs()

    assert Template.with_deleted.get().state == Template.State.DELETED


def test_a_pool_that_is_deleted_stands_against_it_no_more(
    admin: User, ci: User, template: Template
) -> None:
    make_pool(template, ci, size=0)
    with pytest.raises(TemplateNeeded, match="1 warm pool"):
        template_delete(by=admin, template=template)
    Pool.objects.all().delete()
    assert template_delete(by=admin, template=template)


def test_who_asks_while_it_is_deleted_is_refused(
    admin: User, carol: User, template: Template
) -> None:
    snapshot = SnapshotFactory.create(template=template)
    template_delete(by=admin, template=template)
    with pytest.raises(TemplateArchived):
        workspace_create(by=carol, template=Template.objects.get())
    # One that read both before: the snapshot is gone by the time it is locked.
    with pytest.raises(Exception, match="is gone"):
        workspace_create(by=carol, template=template, snapshot=snapshot)
