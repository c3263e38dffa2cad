"""Limits on pages: a refusal, the quota at home, and all of them for administrators."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Snapshot, Template
from provisioner.limits.queries import limits_of_sites
from provisioner.limits.tallies import Tallies
from provisioner.sites.models import SiteCapacity
from provisioner.workspaces.models import Workspace
from tests.support.factories import (
    MirroredSnapshotFactory,
    SnapshotFactory,
    TemplateFactory,
    UserFactory,
)
from tests.support.requests import workspace_create


def test_a_refusal_is_shown_with_all_limits(
    as_alice: Client, alice: User, snapshot: Snapshot
) -> None:
    User.objects.filter(pk=alice.pk).update(max_workspaces=0)

    answer = as_alice.post(f"/templates/{snapshot.template_id}/get/", {})

    assert answer.status_code == 409
    assert "You have 0 of the 0 workspaces that you may have." in answer.text
    assert "Other limits" in answer.text
    assert "Clones of the volume of main" in answer.text
    assert not Workspace.objects.exists()


def test_a_build_that_has_no_place_says_so(
    as_admin: Client, snapshot: Snapshot
) -> None:
    template = snapshot.template
    template.site.snapshots_per_volume = 1
    template.site.save()
    Template.objects.filter(pk=template.pk).update(state=Template.State.READY)

    answer = as_admin.post(f"/templates/{template.pk}/build/", {})

    assert answer.status_code == 409
    assert "1 of the 1 snapshots" in answer.text


def test_home_says_how_much_of_the_quota_is_used(
    as_alice: Client, alice: User, workspace: Workspace
) -> None:
    assert 'class="quotas"' not in as_alice.get("/").text
    team = Team.objects.create(name="Rendering", max_unique_bytes=2**30)
    User.objects.filter(pk=alice.pk).update(max_workspaces=5, team=team)

    page = as_alice.get("/").text

    assert "Workspaces of alice: 1 of 5" in page
    assert "Space of team Rendering: <data" in page
    assert '"1,073,741,824 bytes">1 GiB</data>' in page


def measured(snapshot: Snapshot, *, minutes_ago: float, message: str = "") -> None:
    SiteCapacity.objects.create(
        site=snapshot.template.site,
        ontap_version="9.16.1",
        aggregate_size_bytes=1000 * 2**30,
        aggregate_used_bytes=900 * 2**30,
        measured_at=timezone.now() - dt.timedelta(minutes=minutes_ago),
        status_message=message,
    )


def test_administrators_see_every_limit(as_admin: Client, snapshot: Snapshot) -> None:
    measured(snapshot, minutes_ago=1)
    Template.objects.filter(pk=snapshot.template_id).update(state=Template.State.READY)

    page = as_admin.get("/limits/").text

    assert "ONTAP 9.16.1" in page
    assert "900 GiB" in page
    assert "94 %" in page
    assert "limit-near" in page
    assert "Snapshots of the volume of main" in page
    assert "Nobody has a quota." in page


def test_an_old_measurement_is_said_to_refuse_nobody(
    as_admin: Client, snapshot: Snapshot
) -> None:
    measured(snapshot, minutes_ago=60)

    page = as_admin.get("/limits/").text

    assert "nobody is refused for lack of space" in page
    assert "not measured" in page


def test_a_failed_measurement_says_why(as_admin: Client, snapshot: Snapshot) -> None:
    measured(snapshot, minutes_ago=3, message="ONTAP cannot be reached.")

    assert "failed: ONTAP cannot be reached." in as_admin.get("/limits/").text


def test_without_a_site_there_is_nothing_to_see(as_admin: Client) -> None:
    assert "No site yet." in as_admin.get("/limits/").text


def test_all_limits_take_few_queries(
    as_admin: Client,
    snapshot: Snapshot,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(5):
        template = TemplateFactory.create(state=Template.State.READY)
        SnapshotFactory.create(template=template)
        SiteCapacity.objects.create(site=template.site, measured_at=timezone.now())
        team = Team.objects.create(name=f"Team {number}", max_workspaces=3)
        UserFactory.create(team=team, max_unique_bytes=5)

    with django_assert_max_num_queries(16):
        as_admin.get("/limits/")


def test_a_mirrors_volume_has_its_own_clones_and_snapshots(
    as_admin: Client, alice: User, snapshot: Snapshot
) -> None:
    mirrored = MirroredSnapshotFactory.create(
        snapshot=snapshot, mirror__template=snapshot.template
    )
    site = mirrored.mirror.site
    MirroredSnapshotFactory.create(mirror=mirrored.mirror, state="failed")
    for purpose, at in (("ci", site), ("build", site), ("development", None)):
        workspace_create(by=alice, template=snapshot.template, purpose=purpose, site=at)

    [of_site] = (one for one in limits_of_sites(Tallies()) if one.site == site)

    used = {(limit.code, limit.subject): limit.used for limit in of_site.limits}
    assert used["clone_limit", "main (mirror)"] == 2
    assert used["snapshot_limit", "main (mirror)"] == 1
    assert "main (mirror)" in as_admin.get("/limits/").text


# --- teams


@pytest.fixture
def bob(alice: User) -> User:
    team = Team.objects.create(name="Rendering")
    alice.team = team
    alice.save()
    return UserFactory.create(username="bob", team=team)


def test_team_mates_see_a_workspace_and_change_nothing(
    bob: User, workspace: Workspace, client: Client
) -> None:
    client.force_login(bob)
    listed = client.get("/team/").text
    assert workspace.name in listed
    assert str(workspace.path) in listed

    page = client.get(f"/workspaces/{workspace.pk}/").text
    assert "/team/" in page
    for verb in ("retire", "retry", "restore", "purge", "extend", "keep"):
        assert f"/workspaces/{workspace.pk}/{verb}/" not in page
    assert client.get(f"/workspaces/{workspace.pk}/retire/").status_code == 403


def test_team_mates_are_not_offered_to_try_again(
    bob: User, failed: Workspace, client: Client
) -> None:
    client.force_login(bob)
    page = client.get(f"/workspaces/{failed.pk}/").text
    assert "The aggregate is full." in page
    assert "Retry</button>" not in page


def test_a_team_page_without_a_team(as_carol: Client, workspace: Workspace) -> None:
    page = as_carol.get("/team/").text
    assert "You are in no team." in page
    assert workspace.name not in page
