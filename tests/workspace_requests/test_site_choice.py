"""Where a workspace is cloned: at the site that was chosen, at home, or as ever."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Snapshot
from provisioner.engine.models import Step
from provisioner.lib.refusals import ActionRefused
from provisioner.mirrors.actions import mirror_transfer
from provisioner.mirrors.models import Mirror, MirroredSnapshot
from provisioner.sites.actions.home_sites import home_site_choose, team_home_site_choose
from provisioner.sites.models import Site
from provisioner.workspace_requests.site_choice import nearest_site
from provisioner.workspaces.models import Workspace
from tests.support.factories import SiteFactory, SnapshotFactory
from tests.support.requests import workspace_create


@pytest.fixture
def bangalore(snapshot: Snapshot) -> Site:
    """A site that has a mirror of the template, with its snapshot."""
    server = snapshot.template.site.perforce_server
    site = SiteFactory.create(name="bangalore", perforce_server=server, svm="far")
    mirror = Mirror.objects.create(
        template=snapshot.template,
        site=site,
        name="main at bangalore",
        volume_uuid="1",
        relationship_uuid="2",
        state=Mirror.State.READY,
    )
    MirroredSnapshot.objects.create(
        mirror=mirror,
        snapshot=snapshot,
        ontap_uuid="3",
        state=MirroredSnapshot.State.AVAILABLE,
        arrived_at=timezone.now(),
    )
    return site


def test_without_a_choice_it_is_the_templates(
    alice: User, bangalore: Site, snapshot: Snapshot
) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template)

    assert workspace.site == snapshot.template.site


def test_the_chosen_site(alice: User, bangalore: Site, snapshot: Snapshot) -> None:
    workspace = workspace_create(by=alice, template=snapshot.template, site=bangalore)

    assert (workspace.site, workspace.snapshot) == (bangalore, snapshot)


@pytest.mark.parametrize("whose", ["own", "team's", "own before team's"])
def test_the_home_site(
    whose: str, alice: User, admin: User, bangalore: Site, snapshot: Snapshot
) -> None:
    home = snapshot.template.site
    team = alice.team = Team.objects.create(name="engine")
    alice.save()
    if whose != "own":
        site = bangalore if whose == "team's" else home
        team_home_site_choose(by=admin, team=team, site=site)
    if whose != "team's":
        home_site_choose(by=alice, site=bangalore)

    workspace = workspace_create(by=alice, template=snapshot.template)

    assert workspace.site == bangalore
    home_site_choose(by=alice, site=None)
    team_home_site_choose(by=admin, team=team, site=None)
    other = workspace_create(by=alice, template=snapshot.template, purpose="build")
    assert other.site == home


def test_a_home_site_without_the_template_is_passed_over(
    alice: User, snapshot: Snapshot
) -> None:
    home_site_choose(by=alice, site=SiteFactory.create())

    workspace = workspace_create(by=alice, template=snapshot.template)

    assert workspace.site == snapshot.template.site


def test_a_mirror_gives_the_newest_that_has_arrived(
    alice: User, bangalore: Site, snapshot: Snapshot
) -> None:
    SnapshotFactory.create(template=snapshot.template, change=200)

    workspace = workspace_create(by=alice, template=snapshot.template, site=bangalore)

    assert workspace.snapshot == snapshot


def test_a_mirror_gives_nothing_but_the_held_snapshot(
    alice: User, admin: User, bangalore: Site, snapshot: Snapshot
) -> None:
    SnapshotFactory.create(
        template=snapshot.template,
        held_at=timezone.now(),
        held_by=admin,
        hold_reason="the others crash",
    )
    home_site_choose(by=alice, site=bangalore)
    template = snapshot.template

    assert workspace_create(by=alice, template=template).site == template.site
    with pytest.raises(ActionRefused) as refused:
        workspace_create(by=alice, template=template, site=bangalore, purpose="build")
    assert refused.value.code == "nothing_at_site"


def test_a_snapshot_that_is_not_there_is_refused(
    alice: User, bangalore: Site, snapshot: Snapshot
) -> None:
    newer = SnapshotFactory.create(template=snapshot.template, change=200)

    with pytest.raises(ActionRefused) as refused:
        workspace_create(
            by=alice, template=snapshot.template, site=bangalore, snapshot=newer
        )

    assert refused.value.code == "snapshot_not_at_site"
    assert not Workspace.objects.exists()


def test_a_withdrawn_snapshot_is_withdrawn_everywhere(
    alice: User, admin: User, bangalore: Site, snapshot: Snapshot
) -> None:
    snapshot.withdrawn_at, snapshot.withdrawn_by = timezone.now(), admin
    snapshot.withdraw_reason = "crashes"
    snapshot.save()

    with pytest.raises(ActionRefused) as refused:
        workspace_create(by=alice, template=snapshot.template, site=bangalore)

    assert refused.value.code == "nothing_at_site"


def test_a_mirror_being_deleted_gives_nothing(
    alice: User, bangalore: Site, snapshot: Snapshot
) -> None:
    Mirror.objects.update(state=Mirror.State.DELETING)

    with pytest.raises(ActionRefused) as refused:
        workspace_create(by=alice, template=snapshot.template, site=bangalore)

    assert refused.value.code == "nothing_at_site"


def test_a_repeat_for_another_site_is_another_request(
    alice: User, bangalore: Site, snapshot: Snapshot
) -> None:
    template = snapshot.template
    first = workspace_create(by=alice, template=template)

    assert workspace_create(by=alice, template=template) == first
    assert workspace_create(by=alice, template=template, site=bangalore) != first


def test_the_page_offers_sites_where_there_are_mirrors(
    as_alice: Client, bangalore: Site, snapshot: Snapshot
) -> None:
    address = f"/templates/{snapshot.template_id}/get/"
    page = as_alice.get(address).content.decode()
    assert "bangalore, change 100 built" in page
    assert f"Your site: {snapshot.template.site.name}, change 100" in page

    newer = SnapshotFactory.create(template=snapshot.template, change=200)
    MirroredSnapshot.objects.create(mirror=Mirror.objects.get(), snapshot=newer)
    page = as_alice.get(address).content.decode()
    assert "bangalore, change 100 built; change 200 is being transferred" in page

    as_alice.post(address, {"site": bangalore.pk})

    assert Workspace.objects.get().site == bangalore


def test_the_page_says_at_the_site_what_is_not_there(
    as_alice: Client, bangalore: Site, snapshot: Snapshot
) -> None:
    newer = SnapshotFactory.create(template=snapshot.template, change=200)
    answer = as_alice.post(
        f"/templates/{snapshot.template_id}/get/",
        {"site": bangalore.pk, "snapshot": newer.pk},
    )
    assert answer.status_code == 409
    assert answer.context["form"].errors["site"]


def test_a_script_names_the_site(
    api_as_alice: Any, bangalore: Site, snapshot: Snapshot
) -> None:
    body = {"template": snapshot.template.name, "site": "bangalore"}
    answer = api_as_alice.post("/api/v1/workspaces", body)
    assert answer.status_code == 202
    assert answer.json()["site"] == "bangalore"

    answer = api_as_alice.post("/api/v1/workspaces", {**body, "site": "nowhere"})
    assert answer.status_code == 400


def test_a_script_gets_the_nearest_site_and_reads_why(
    api_as_alice: Any, alice: User, admin: User, bangalore: Site, snapshot: Snapshot
) -> None:
    home = snapshot.template.site

    def asked(purpose: str, **headers: str) -> tuple[str, str]:
        body = {"template": "main", "site": "nearest", "purpose": purpose}
        answer = api_as_alice.post("/api/v1/workspaces", body, headers=headers)
        assert answer.status_code == 202, answer.text
        made = answer.json()
        again = api_as_alice.get(f"/api/v1/workspaces/{made['id']}").json()
        assert again["site_because"] == made["site_because"]
        return made["site"], made["site_because"]

    assert asked("ci") == (
        home.name,
        f"{home.name} is the template's site, and no nearer one is known.",
    )
    SiteFactory.create(name="wide", networks=["127.0.0.0/8"])
    Site.objects.filter(pk=bangalore.pk).update(networks=["127.0.0.0/24", "::1/128"])
    said = "bangalore is the site of 127.0.0.0/24, where the request came from."
    assert asked("build") == ("bangalore", said)
    # Anybody could claim another address.
    assert asked("ci-edit", **{"X-Forwarded-For": "10.9.9.9"}) == ("bangalore", said)
    home_site_choose(by=alice, site=home)
    assert asked("development") == (home.name, f"{home.name} is your home site.")


def test_the_nearest_site_is_a_teams_and_passed_over_without_the_template(
    alice: User, admin: User, bangalore: Site, snapshot: Snapshot
) -> None:
    alice.team = Team.objects.create(name="engine")
    alice.save()
    team_home_site_choose(by=admin, team=alice.team, site=bangalore)
    template = snapshot.template

    near = nearest_site(by=alice, template=template, address="::ffff:10.2.0.1")
    assert near.because == "bangalore is the home site of your team."
    MirroredSnapshot.objects.update(state="gone")
    far = nearest_site(by=alice, template=template, address=None)

    assert far.site == template.site
    assert far.because.endswith("site, and bangalore has nothing that fits.")


def test_people_choose_their_home_site(
    as_alice: Client, alice: User, bangalore: Site
) -> None:
    as_alice.post("/me/", {"home_site": bangalore.pk})
    assert alice.home_site.site == bangalore
    assert as_alice.post("/me/", {"home_site": 0}).status_code == 422


def test_cards_say_where_and_what_the_click_gives(
    as_alice: Client, alice: User, bangalore: Site, snapshot: Snapshot
) -> None:
    SnapshotFactory.create(template=snapshot.template, change=200)
    for page in ("/", "/templates/"):
        assert "</span> at bangalore" not in as_alice.get(page).content.decode()
    home_site_choose(by=alice, site=bangalore)
    for page in ("/", "/templates/"):
        shown = as_alice.get(page).content.decode()
        assert '<span class="change">100</span> at bangalore' in shown


def test_people_read_when_what_is_on_its_way_arrives(
    as_alice: Client,
    api_as_alice: Any,
    alice: User,
    admin: User,
    bangalore: Site,
    snapshot: Snapshot,
) -> None:
    home_site_choose(by=alice, site=bangalore)
    MirroredSnapshot.objects.update(bytes=300 * 2**20, seconds=10)
    newer = SnapshotFactory.create(template=snapshot.template, change=200)
    mirror = Mirror.objects.get()
    mirror_transfer(by=admin, mirror=mirror, snapshot=newer)
    pages = ("/", "/templates/", f"/templates/{snapshot.template_id}/get/")
    for page in pages:
        assert "in about 10 s (300 MiB left)" in as_alice.get(page).text, page
    assert "change 200 at bangalore in about" in as_alice.get("/").text

    mirror.operations.get().steps.filter(name="transfer").update(
        state=Step.State.RUNNING,
        attempt=1,
        started_at=timezone.now() - dt.timedelta(seconds=100),
        progress={"done": 200 * 2**20, "unit": "bytes", "text": "200 MiB"},
    )

    assert "change 200 in about 55 s (100 MiB left)" in as_alice.get(pages[-1]).text
    assert "change 200 in about 55 s" in as_alice.get(f"/mirrors/{mirror.pk}/").text
    [listed] = api_as_alice.get("/api/v1/mirrors").json()["results"]
    coming = listed["figures"]["coming"]
    assert (coming["change"], coming["bytes_left"]) == (200, 100 * 2**20)
    assert 49 < coming["seconds_left"] < 55
    Step.objects.filter(name="transfer").update(progress={"done": 400 * 2**20})
    assert "change 200 is being transferred" in as_alice.get(pages[-1]).text
    [listed] = api_as_alice.get("/api/v1/mirrors").json()["results"]
    assert listed["figures"]["coming"]["seconds_left"] is None


def test_a_site_that_is_down_names_the_others_that_have_it(
    as_alice: Client, bangalore: Site
) -> None:
    Site.objects.filter(pk=bangalore.pk).update(title="Bengaluru")
    said = as_alice.get("/").content.decode()
    assert "No worker runs for the site" in said
    assert "With options you can get a workspace at Bengaluru." in said
