"""The plan that frees space at a site: who is in it, and what confirming it does."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.catalog.models import Snapshot
from provisioner.lib import clocks
from provisioner.storage.freeing import SpacePlan, space_plan
from provisioner.storage.models import SnapshotSize
from provisioner.workspaces.models import Workspace
from tests.support.factories import SnapshotFactory

pytestmark = pytest.mark.django_db

GIB = 1 << 30


@pytest.fixture
def idle(ready: Workspace) -> Workspace:
    """A workspace of alice that nobody has used for a month, and its old snapshot."""
    template = ready.template
    template.snapshots_to_keep = 1
    template.save()
    SnapshotFactory.create(template=template, name="c101.b2", change=101)
    SnapshotSize.objects.create(
        snapshot=ready.snapshot, size_bytes=5 * GIB, measured_at=timezone.now()
    )
    Workspace.objects.filter(pk=ready.pk).update(
        unique_bytes=GIB,
        split_bytes=2 * GIB,
        ready_at=timezone.now() - dt.timedelta(days=30),
        activity_seen_at=timezone.now(),
        expires_at=None,
    )
    ready.refresh_from_db()
    return ready


def planned(by: User, workspace: Workspace, **asked: bool) -> SpacePlan:
    return space_plan(
        by,
        site=workspace.site,
        wanted_bytes=3 * GIB,
        now=clocks.database_now(),
        **asked,
    )


def acts_of(found: SpacePlan) -> list[tuple[str, int]]:
    return [(each.verb, each.act.frees_bytes // GIB) for each in found.acts]


def test_who_has_never_worked_goes_with_its_snapshot(
    idle: Workspace, admin: User
) -> None:
    assert acts_of(planned(admin, idle)) == [("Retire", 6)]


def test_who_may_hold_work_is_split_unless_included(
    idle: Workspace, admin: User
) -> None:
    Workspace.objects.update(activity={"opened": {"count": 2}})
    assert acts_of(planned(admin, idle)) == [("Split", 3)]
    assert acts_of(planned(admin, idle, includes_work=True)) == [("Retire", 6)]
    Workspace.objects.update(activity={}, activity_seen_at=None)
    assert acts_of(planned(admin, idle)) == [("Split", 3)]


def test_who_was_checked_and_holds_nothing_goes(idle: Workspace, admin: User) -> None:
    nothing = {"at": None, "detail": ""}
    signs = {"files": nothing, "pending": nothing, "shelved": nothing}
    Workspace.objects.update(activity={**signs, "opened": {"count": 0}})
    assert acts_of(planned(admin, idle)) == [("Retire", 6)]
    Workspace.objects.update(
        activity={**signs, "shelved": {"at": "2026-11-01T10:00:00+00:00", "detail": ""}}
    )
    assert acts_of(planned(admin, idle)) == [("Split", 3)]


def test_who_is_kept_or_used_is_never_retired(idle: Workspace, admin: User) -> None:
    Workspace.objects.update(keep_reason="The release.", split_bytes=None)
    assert acts_of(planned(admin, idle)) == []
    Workspace.objects.update(keep_reason="", ready_at=timezone.now())
    assert acts_of(planned(admin, idle)) == []


def test_what_nothing_needs_is_pruned_first(idle: Workspace, admin: User) -> None:
    Workspace.objects.update(split_at=timezone.now())
    assert acts_of(planned(admin, idle)) == [("Prune", 5)]


def test_a_plan_is_shown_then_requested_once_it_is_confirmed(
    idle: Workspace, as_admin: Client, as_alice: Client
) -> None:
    page = "/storage/free/"
    asked = {"site": str(idle.site_id), "wanted_bytes": "3 GiB"}
    assert as_alice.get(page).status_code == 403
    assert "/login/" in Client().get(page)["Location"]
    assert as_admin.get(page).status_code == 200
    assert as_admin.get(page, {**asked, "wanted_bytes": "much"}).status_code == 422
    seen = as_admin.get(page, asked).text
    assert "It frees" in seen
    assert "It was never used in 30 days." in seen or "abandoned" in seen
    seal = re.findall(r'name="seal" value="(\w+)"', seen)[0]
    stale = as_admin.post(page, {**asked, "seal": "another"})
    assert stale.status_code == 409
    assert "Check the new one" in stale.text
    assert not idle.operations.filter(kind="retire").exists()

    answer = as_admin.post(page, {**asked, "seal": seal})

    assert "It is being retired." in answer.text
    idle.refresh_from_db()
    assert idle.state == Workspace.State.RETIRING


def test_a_plan_that_frees_too_little_says_so(
    snapshot: Snapshot, as_admin: Client
) -> None:
    asked = {"site": str(snapshot.template.site_id), "wanted_bytes": "2 TiB"}
    seen = as_admin.get("/storage/free/", asked).text
    assert "Not enough can be freed" in seen


def test_the_api_plans_and_requests_what_it_showed(
    idle: Workspace,
    api_as_admin: APIClient,
    api_as_alice: APIClient,
    api_as_nobody: APIClient,
) -> None:
    url = "/api/v1/storage/plan"
    asked: dict[str, Any] = {"site": idle.site.name, "wanted_bytes": 3 * GIB}
    assert api_as_nobody.get(url, asked).status_code == 401
    assert api_as_alice.get(url, asked).status_code == 403
    assert api_as_admin.get(url, {**asked, "site": "elsewhere"}).status_code == 400
    shown = api_as_admin.get(url, asked).json()
    assert (shown["is_enough"], shown["frees_bytes"]) == (True, 6 * GIB)
    assert [each["workspace"] for each in shown["acts"]] == [idle.pk]
    stale = api_as_admin.post(url, {**asked, "seal": "another"}, format="json")
    assert (stale.status_code, stale.json()["code"]) == (409, "plan_stale")

    told = api_as_admin.post(url, {**asked, "seal": shown["seal"]}, format="json")

    assert told.status_code == 202
    assert [each["code"] for each in told.json()["results"]] == [""]
    idle.refresh_from_db()
    assert idle.state == Workspace.State.RETIRING
