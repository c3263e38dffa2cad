"""The pages of warm pools, and the page of what was claimed from one."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.pools.models import Pool
from provisioner.pools.sweeps import sweep_pools
from provisioner.workspaces.models import Workspace
from tests.support.browsers import browser_of
from tests.support.requests import workspace_create
from tests.support.warm_pools import fail, filled, make_pool


def form(snapshot: Snapshot, owner: User) -> dict[str, object]:
    return {
        "template": snapshot.template_id,
        "purpose": "ci",
        "owner": owner.username,
        "size": "2",
        "windows": "mon-fri 07:00-19:00 2\r\nsat,sun 00:00-24:00 2\r\n",
        "max_age_seconds": "12 h",
        "idle_seconds": "",
    }


def test_a_pool_is_made_shown_changed_and_deleted(
    as_admin: Client, ci: User, snapshot: Snapshot
) -> None:
    assert "There is no warm pool" in as_admin.get(reverse("pool-list")).text

    made = as_admin.post(reverse("pool-create"), form(snapshot, ci), follow=True)

    pool = Pool.objects.get()
    assert pool.windows == ["mon-fri 07:00-19:00 2", "sat,sun 00:00-24:00 2"]
    assert (pool.max_age_seconds, pool.idle_seconds) == (43200, None)
    assert "0 of 2 members ready" in made.text
    members = filled(pool)
    page = as_admin.get(reverse("pool-detail", args=[pool.pk])).text
    assert "2 of 2 members ready" in page
    assert all(member.name in page for member in members)
    operation = members[0].operations.get()
    shown = as_admin.get(reverse("operation-detail", args=[operation.pk]))
    assert reverse("pool-detail", args=[pool.pk]) in shown.text
    audit_log = as_admin.get(reverse("audit-log")).text
    assert members[0].name in audit_log
    assert reverse("workspace-detail", args=[members[0].pk]) not in audit_log

    edited = as_admin.post(
        reverse("pool-edit", args=[pool.pk]),
        {"size": "1", "windows": "", "max_age_seconds": "1 d", "idle_seconds": "2 d"},
    )

    assert edited.status_code == 302
    pool.refresh_from_db()
    assert (pool.size, pool.windows, pool.idle_seconds) == (1, [], 172800)
    gone = as_admin.get(reverse("pool-delete", args=[pool.pk])).text
    assert "2 members are retired" in gone
    assert all(member.name in gone for member in members)
    assert Pool.objects.exists()
    as_admin.post(reverse("pool-delete", args=[pool.pk]))
    assert not Pool.objects.exists()


def test_what_makes_no_sense_is_said_at_the_form(
    as_admin: Client, ci: User, snapshot: Snapshot
) -> None:
    wrong = {**form(snapshot, ci), "windows": "always 3"}

    answer = as_admin.post(reverse("pool-create"), wrong)

    assert answer.status_code == 409
    assert "is not like" in answer.text
    assert "always 3" in answer.text
    answer = as_admin.post(reverse("pool-create"), {**wrong, "max_age_seconds": "x"})
    assert answer.status_code == 422
    assert not Pool.objects.exists()
    pool = make_pool(snapshot.template, ci, size=1)
    answer = as_admin.post(reverse("pool-edit", args=[pool.pk]), {"size": "5000"})
    assert answer.status_code == 422
    again = as_admin.post(reverse("pool-create"), form(snapshot, ci))
    assert again.status_code == 409
    assert "already exists" in again.text


def test_the_pages_say_what_keeps_a_pool_from_its_size(
    as_admin: Client, ci: User, snapshot: Snapshot
) -> None:
    pool = make_pool(snapshot.template, ci, size=1)
    sweep_pools(timestamp=0)
    fail(Workspace.objects.get(), code="aggregate_full")
    assert "1 failed" in as_admin.get(reverse("pool-list")).text

    sweep_pools(timestamp=0)

    page = as_admin.get(reverse("pool-detail", args=[pool.pk])).text
    assert "Members could not be created" in page
    assert "1 failure in a row" in page


def test_the_page_says_warm_or_cold(ci: User, snapshot: Snapshot) -> None:
    [member] = filled(make_pool(snapshot.template, ci, size=1))
    browser = browser_of(ci)
    address = reverse("workspace-detail", args=[member.pk])
    assert browser.get(address).status_code == 404

    warm, cold = (
        workspace_create(by=ci, template=snapshot.template, purpose="ci")
        for _ in range(2)
    )

    page = browser.get(address).text
    assert "Warm" in page
    assert "which saved" in page
    assert warm.remote_name in page
    assert browser.get(reverse("workspace-list")).text.count(warm.name) > 0
    cold_page = browser.get(reverse("workspace-detail", args=[cold.pk])).text
    assert "All members of the pool were claimed" in cold_page
