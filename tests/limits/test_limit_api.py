"""Limits over the API: a refusal names them all, and administrators read them."""

from __future__ import annotations

from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Snapshot, Template
from provisioner.sites.models import SiteCapacity
from provisioner.workspaces.models import Workspace
from tests.support.factories import SiteFactory

WORKSPACES = "/api/v1/workspaces"
LIMITS = "/api/v1/limits"


def test_a_refusal_says_which_limit_and_how_near_the_others_are(
    api_as_alice: APIClient, alice: User, snapshot: Snapshot
) -> None:
    User.objects.filter(pk=alice.pk).update(max_workspaces=0)

    answer = api_as_alice.post(WORKSPACES, {"template": snapshot.template.name})

    assert answer.status_code == 409
    body = answer.json()
    assert body["code"] == "quota_workspaces"
    assert body["detail"].startswith("You have 0 of the 0 workspaces")
    assert body["limits"][0] == {
        "code": "quota_workspaces",
        "title": "Workspaces of alice",
        "subject": "alice",
        "used": 0,
        "allowed": 0,
        "percent": 100,
        "unit": "things",
        "as_of": None,
        "part": "",
    }
    clones = next(x for x in body["limits"] if x["code"] == "clone_limit")
    assert (clones["used"], clones["allowed"]) == (0, 32_767)
    assert not Workspace.objects.exists()


def test_administrators_see_all_limits(
    api_as_admin: APIClient, snapshot: Snapshot
) -> None:
    template = snapshot.template
    Template.objects.filter(pk=template.pk).update(state=Template.State.READY)
    SiteCapacity.objects.create(
        site=template.site,
        ontap_version="9.16.1",
        aggregate_size_bytes=1000,
        aggregate_used_bytes=500,
        measured_at=timezone.now(),
    )
    SiteFactory.create(name="zz-dark")
    Team.objects.create(name="Rendering", max_workspaces=5)

    body = api_as_admin.get(LIMITS).json()

    bright, dark = body["sites"]
    assert (bright["site"], bright["is_stale"]) == (template.site.name, False)
    by_code = {limit["code"]: limit for limit in bright["limits"]}
    assert by_code["space_low"]["percent"] == 52
    assert by_code["snapshot_limit"]["used"] == 1
    assert by_code["clone_limit"]["subject"] == template.name
    assert (dark["measured_at"], dark["is_stale"]) == (None, True)
    [quota] = body["quotas"]
    assert (quota["title"], quota["used"]) == ("Workspaces of team Rendering", 0)


def test_others_do_not_see_them(api_as_alice: APIClient) -> None:
    assert api_as_alice.get(LIMITS).status_code == 403
