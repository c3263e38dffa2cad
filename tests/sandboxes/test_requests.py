"""Requests for sandboxes: what is refused by name, before anything is cloned."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import Team, User
from provisioner.accounts.system import system_user
from provisioner.engine.models import Operation
from provisioner.insight.models import ServerConfiguration
from provisioner.lib import clocks
from provisioner.lib.refusals import ActionRefused
from provisioner.sandboxes.actions import creating, describing, hosts, keeping, policies
from provisioner.sandboxes.models import (
    P4dVersion,
    Sandbox,
    SandboxHost,
    SandboxPolicy,
    ServerVolumes,
)
from provisioner.sandboxes.states import set_sandbox_state
from provisioner.sandboxes.sweeps import retire_expired, retire_without_hosts
from provisioner.sites.models import PerforceServer, Site
from tests.support.factories import (
    SandboxFactory,
    SandboxHostFactory,
    SiteFactory,
    UserFactory,
)
from tests.support.workers import start_worker

pytestmark = pytest.mark.django_db

WHOLE = "db p4_db/root\njournal p4_journal/journal\nlog p4_db/log\ndepot p4_depots"


@pytest.fixture
def admin() -> User:
    return UserFactory.create(username="admin", is_staff=True)


@pytest.fixture
def site() -> Site:
    return SiteFactory.create(perforce_server__server_id="commit")


@pytest.fixture
def server(site: Site, admin: User) -> PerforceServer:
    server: PerforceServer = site.perforce_server
    describing.server_volumes_save(by=admin, server=server, site=site, places=WHOLE)
    return server


@pytest.fixture
def asked(server: PerforceServer, site: Site, admin: User) -> dict[str, Any]:
    host = SandboxHostFactory.create(site=site, at_most=2)
    return {
        "by": admin,
        "server": server,
        "name": "case",
        "purpose": "diagnose",
        "version": P4dVersion.objects.create(release="2024.2", path="/opt/p4d"),
        "host": host,
        "hours": 8,
    }


def code_of(**asked: Any) -> str:
    with pytest.raises(ActionRefused) as refused:
        creating.sandbox_create(**asked)
    assert not Operation.objects.exists()
    return refused.value.code


# --- servers


@pytest.mark.parametrize("missing", ["db", "journal", "depot"])
def test_a_list_that_forgets_a_part_is_refused_by_its_name(
    admin: User, site: Site, missing: str
) -> None:
    lines = [line for line in WHOLE.splitlines() if not line.startswith(missing)]

    with pytest.raises(ActionRefused) as refused:
        describing.server_volumes_save(
            by=admin,
            server=site.perforce_server,
            site=site,
            places="\n".join(lines),
        )

    assert refused.value.code == "volume_list_incomplete"
    assert f"names no {missing}" in refused.value.sentence
    assert not ServerVolumes.objects.exists()


@pytest.mark.parametrize(
    "line", ["db", "disk v", "db v/../w", "db v-1/a", "journal v\nlog v x", "db /v"]
)
def test_a_line_that_is_no_place_is_refused(admin: User, site: Site, line: str) -> None:
    with pytest.raises(ActionRefused) as refused:
        describing.server_volumes_save(
            by=admin, server=site.perforce_server, site=site, places=f"{line}\n{WHOLE}"
        )

    assert refused.value.code == "invalid"


def test_places_are_replaced_and_read_back_as_they_were(
    server: PerforceServer, site: Site, admin: User
) -> None:
    places = "depot all/archives\ndb all\njournal all"

    saved = describing.server_volumes_save(
        by=admin, server=server, site=site, places=places
    )

    lines = [place.line for place in saved.places.all()]
    assert lines == ["db all", "journal all/journal", "depot all/archives"]


# --- sandboxes


def test_a_sandbox_clones_each_volume_once_metadata_first(
    asked: dict[str, Any],
) -> None:
    sandbox = creating.sandbox_create(**asked)

    volumes = [each.source for each in sandbox.volumes.all()]
    assert volumes == ["p4_db", "p4_journal", "p4_depots"]
    assert sandbox.server_id == "sandbox-case"
    assert sandbox.port == asked["host"].first_port
    operation = Operation.objects.get()
    assert [step.name for step in operation.steps.all()][:3] == [
        *("server", "host", "point"),
    ]


def test_what_equals_productions_is_refused(asked: dict[str, Any]) -> None:
    server, host = asked["server"], asked["host"]
    PerforceServer.objects.filter(pk=server.pk).update(p4port="localhost:16664")

    assert code_of(**asked, server_id="Commit") == "server_id_of_a_server"
    assert code_of(**asked, port=16664) == "port_of_a_server"

    SandboxHost.objects.filter(pk=host.pk).update(first_port=16664)
    assert creating.sandbox_create(**asked).port == 16665


def test_a_full_host_and_what_another_sandbox_has_are_refused(
    asked: dict[str, Any], site: Site
) -> None:
    host = asked["host"]
    other = SandboxFactory.create(site=site, host=host, name="other", port=16660)

    assert code_of(**asked, port=16660) == "port_taken"
    assert code_of(**asked, server_id=other.server_id) == "server_id_of_a_server"
    assert code_of(**{**asked, "name": "other"}) == "sandbox_name_taken"
    SandboxFactory.create(site=site, host=host)
    assert code_of(**asked) == "sandbox_host_full"


def test_an_older_p4d_and_a_host_elsewhere_are_refused(asked: dict[str, Any]) -> None:
    ServerConfiguration.objects.create(
        server=asked["server"], version="P4D/LINUX26X86_64/2025.1/1 (2025/06/01)"
    )

    assert code_of(**asked) == "p4d_too_old"
    far = SandboxHostFactory.create()
    assert code_of(**{**asked, "host": far}) == "sandbox_host_elsewhere"
    ServerVolumes.objects.all().delete()
    assert code_of(**asked) == "server_not_described"


def test_a_policy_says_who_how_many_and_how_long(
    asked: dict[str, Any], admin: User
) -> None:
    team = Team.objects.create(name="Tools")
    asked["by"] = UserFactory.create(team=team)
    assert code_of(**asked) == "no_sandboxes"
    policies.sandbox_policy_save(by=admin, team=team, at_most=1, longest_hours=8)
    assert code_of(**{**asked, "hours": 9}) == "sandbox_lease_too_long"

    first = creating.sandbox_create(**asked)

    with pytest.raises(ActionRefused) as refused:
        creating.sandbox_create(**{**asked, "name": "second"})
    assert refused.value.code == "too_many_sandboxes"
    with pytest.raises(ActionRefused):
        keeping.sandbox_extend(by=asked["by"], sandbox=first, hours=9)
    keeping.sandbox_extend(by=asked["by"], sandbox=first, hours=8)
    stranger = UserFactory.create(team=team)
    with pytest.raises(ActionRefused):
        keeping.sandbox_retire(by=stranger, sandbox=first)
    policies.sandbox_policy_delete(by=admin, policy=SandboxPolicy.objects.get())


def test_a_policy_bounds_a_team_together(asked: dict[str, Any], admin: User) -> None:
    team = Team.objects.create(name="Tools")
    policies.sandbox_policy_save(
        by=admin, team=team, at_most=2, longest_hours=8, team_at_most=1
    )
    SandboxFactory.create(owner=UserFactory.create(team=team))
    asked["by"] = UserFactory.create(team=team)

    assert code_of(**asked) == "team_has_too_many_sandboxes"


def test_limits_are_shown_before_the_click(
    asked: dict[str, Any], as_alice: Client, alice: User
) -> None:
    alice.team = Team.objects.create(name="Tools")
    alice.save()
    SandboxPolicy.objects.create(team=alice.team, team_at_most=3, longest_hours=6)
    SandboxFactory.create(host=asked["host"], site=asked["host"].site)

    page = as_alice.get("/sandboxes/new/").text

    assert "You have 0 of 1 sandboxes, for 6 hours each at most." in page
    assert "Tools has 0 of 3." in page
    assert ": 1 of 2 taken" in page
    assert 'max="6"' in page


def test_a_stopped_server_is_started_again_by_its_owner(
    as_alice: Client, alice: User, api_as_alice: APIClient
) -> None:
    sandbox = SandboxFactory.create(
        owner=alice, state="stopped", status_message="Its server does not run."
    )
    where = f"/sandboxes/{sandbox.pk}/"
    page = as_alice.get(where).text
    assert "Start again" in page
    assert "No worker at" in page

    assert as_alice.post(f"{where}start/").status_code == 302

    sandbox.refresh_from_db()
    assert sandbox.state == "starting"
    again = api_as_alice.post(f"/api/v1{where}start".rstrip("/"))
    assert again.status_code == 409
    operation = sandbox.operations.get()
    with transaction.atomic():
        set_sandbox_state(sandbox, Sandbox.State.FAILED, code="x", message="Said.")
    Operation.objects.update(
        state=Operation.State.FAILED, ended_at=clocks.database_now()
    )
    assert keeping.sandbox_retry(by=alice, sandbox=sandbox).kind == operation.kind


def test_a_host_that_answers_is_not_left_out(
    as_admin: Client,
) -> None:
    sandbox = SandboxFactory.create()
    where = f"/sandboxes/{sandbox.pk}/retire/"
    assert "Without its host" in as_admin.get(where).text
    start_worker(sandbox.host.name, sandbox.host.queue)

    assert "Without its host" not in as_admin.get(where).text
    refused = as_admin.post(where, {"without_host": "on"})

    assert refused.status_code == 409
    assert "Retire the sandbox with it" in refused.text


def test_a_retirement_that_waits_for_a_lost_host_goes_on_without_it() -> None:
    sandbox, now = SandboxFactory.create(), clocks.database_now()
    first = keeping.sandbox_retire(by=system_user(), sandbox=sandbox)
    assert retire_without_hosts(now=now + dt.timedelta(minutes=59)) == 0

    assert retire_without_hosts(now=now + dt.timedelta(minutes=61)) == 1

    first.refresh_from_db()
    assert first.state == Operation.State.CANCELED
    kinds = [each.kind for each in sandbox.operations.all()]
    assert kinds == ["sandbox_abandon", "sandbox_retire"]
    assert retire_without_hosts(now=now + dt.timedelta(minutes=61)) == 0
    assert keeping.sandbox_retire(by=system_user(), sandbox=sandbox).kind == kinds[0]


def test_a_lease_that_ended_retires_and_interrupts_nothing_else(admin: User) -> None:
    now = clocks.database_now()
    over = SandboxFactory.create(
        created_at=now - dt.timedelta(hours=9), expires_at=now - dt.timedelta(hours=1)
    )
    SandboxFactory.create()

    assert retire_expired(now=now) == 1

    over.refresh_from_db()
    assert over.state == Sandbox.State.RETIRING
    assert retire_expired(now=now) == 0
    set_sandbox_state(over, Sandbox.State.FAILED, code="sandbox_left", message="Left.")
    over.operations.update(state=Operation.State.FAILED, ended_at=now)
    assert retire_expired(now=now + dt.timedelta(minutes=59)) == 0
    assert retire_expired(now=now + dt.timedelta(minutes=61)) == 1


def test_a_path_that_is_none_is_refused_at_once(
    server: PerforceServer, site: Site, admin: User
) -> None:
    places = WHOLE.replace("p4_depots", f"p4_depots/{'a' * 60}%")
    with pytest.raises(ActionRefused, match="below the volume"):
        describing.server_volumes_save(
            by=admin, server=server, site=site, places=places
        )


def test_a_host_of_retired_sandboxes_is_kept(admin: User) -> None:
    now = clocks.database_now()
    old = SandboxFactory.create(state="retired", retired_at=now)

    with pytest.raises(ActionRefused) as refused:
        hosts.sandbox_host_delete(by=admin, host=old.host)

    assert refused.value.code == "sandbox_host_in_history"


def test_people_of_an_allowed_team_find_the_page(alice: User, as_alice: Client) -> None:
    alice.team = Team.objects.create(name="Tools")
    alice.save()
    beside = "/verifications/"  # of the same group
    assert 'href="/sandboxes/"' not in as_alice.get(beside).text
    SandboxPolicy.objects.create(team=alice.team)
    assert 'href="/sandboxes/"' in as_alice.get(beside).text


@pytest.mark.parametrize(
    ("purpose", "status"), [("baseline", 202), ("drill", 400), ("unheard-of", 400)]
)
def test_only_purposes_that_people_may_request_are_taken(
    api_as_admin: APIClient, asked: dict[str, Any], purpose: str, status: int
) -> None:
    body = {
        **{key: asked[key] for key in ("name", "hours")},
        **{key: asked[key].name for key in ("server", "host")},
        "version": "2024.2",
    }
    answer = api_as_admin.post("/api/v1/sandboxes", {**body, "purpose": purpose})
    assert answer.status_code == status
    assert "purpose" in answer.text


def test_a_creation_is_interrupted_by_its_retirement(
    asked: dict[str, Any], admin: User
) -> None:
    sandbox = creating.sandbox_create(**asked)

    operation = keeping.sandbox_retire(by=admin, sandbox=sandbox)

    assert keeping.sandbox_retire(by=admin, sandbox=sandbox) == operation
    states = [each.state for each in sandbox.operations.all()]
    assert states == ["running", "canceled"]
    assert keeping.sandbox_retry(by=admin, sandbox=sandbox) == operation
    with pytest.raises(ActionRefused) as refused:
        keeping.sandbox_extend(by=admin, sandbox=sandbox, hours=1)
    assert refused.value.code == "sandbox_moving"


# --- pages and API


def test_an_administrator_describes_and_requests_on_pages(
    as_admin: Client, site: Site
) -> None:
    server = site.perforce_server
    assert "Some setup is missing" in as_admin.get("/sandboxes/new/").text
    said = {"site": site.name, "places": "db p4\ndepot p4/depots"}
    place = f"/sandboxes/setup/servers/{server.pk}/"

    refused = as_admin.post(place, said)

    assert refused.status_code == 409
    assert "names no journal" in refused.text
    said["places"] += "\njournal p4/journal"
    assert as_admin.post(place, said).status_code == 302
    posted = {
        "versions": {"release": "2024.2", "path": "/opt/p4d"},
        "hosts": {
            **{"name": "isolated", "site": site.name, "address": "127.0.0.1"},
            **{"first_port": 16660, "at_most": 2, "uid": 1, "gid": 1},
        },
        "policies": {
            "team": Team.objects.create(name="Tools").name,
            **{"at_most": 1, "longest_hours": 8},
        },
    }
    for what, body in posted.items():
        answer = as_admin.post(f"/sandboxes/setup/{what}/new/", body)
        assert answer.status_code == 302, answer.text
    page = as_admin.get("/sandboxes/setup/").text
    for word in ("p4/journal", "/opt/p4d", "sandboxes.isolated", "Tools"):
        assert word in page
    asked = {"server": server.name, "name": "case", "purpose": "patch", "hours": 8}
    asked |= {"version": "2024.2", "host": "isolated"}

    assert '<details class="fold">' in as_admin.get("/sandboxes/new/").text
    PerforceServer.objects.filter(pk=server.pk).update(server_id="production")
    refused = as_admin.post("/sandboxes/new/", asked | {"server_id": "PRODUCTION"})
    # What is wrong has to be seen: it is about a field that is folded away at first.
    assert '<details class="fold" open>' in refused.text
    assert "has the ServerID production." in refused.text

    made = as_admin.post("/sandboxes/new/", asked)

    assert made.status_code == 302, made.text
    where = made.headers["Location"]
    page = as_admin.get(where).text
    assert "Ask the server what it is" in page
    assert "127.0.0.1:16660" in page
    assert as_admin.post(f"{where}retire/").status_code == 302


def test_retired_sandboxes_are_listed_where_they_are_asked_for(
    as_admin: Client, as_alice: Client
) -> None:
    SandboxFactory.create(name="there")
    past = SandboxFactory.create(
        name="past", state=Sandbox.State.RETIRED, retired_at=clocks.database_now()
    )

    usual = as_admin.get("/sandboxes/").text
    retired = as_admin.get("/sandboxes/?state=retired").text

    detail = f"/sandboxes/{past.pk}/"
    assert detail not in usual
    assert detail in retired
    assert ">there<" not in retired
    assert detail not in as_alice.get("/sandboxes/?state=retired").text


def test_hosts_are_offered_with_what_is_taken_and_whether_a_worker_is_there(
    as_admin: Client, site: Site, asked: dict[str, Any]
) -> None:
    served = asked["host"]
    SandboxHostFactory.create(name="away", site=site)
    start_worker("h", served.queue)

    page = as_admin.get("/sandboxes/new/").text

    assert page.count(", no worker reports") == 1
    assert f"{served.name}: 0 of 2 taken, at" in page
    assert f'<option value="{served.name}" selected>' in page


def test_others_see_neither_the_list_nor_a_sandbox(
    as_alice: Client, api_as_alice: APIClient
) -> None:
    sandbox = SandboxFactory.create()

    assert sandbox.name not in as_alice.get("/sandboxes/").text
    assert as_alice.get(f"/sandboxes/{sandbox.pk}/").status_code == 404
    assert api_as_alice.get("/api/v1/sandboxes").json()["results"] == []


def test_the_api_requests_and_retires(
    api_as_admin: APIClient, asked: dict[str, Any]
) -> None:
    body = {
        **{key: asked[key] for key in ("name", "purpose", "hours")},
        **{key: asked[key].name for key in ("server", "host")},
        "version": "2024.2",
    }

    made = api_as_admin.post("/api/v1/sandboxes", body)

    assert made.status_code == 202, made.json()
    where = f"/api/v1/sandboxes/{made.json()['id']}"
    assert api_as_admin.get(where).json()["state"] == "creating"
    assert api_as_admin.post(f"{where}/retire").status_code == 202
    again = api_as_admin.post("/api/v1/sandboxes", {**body, "version": "2020.1"})
    assert again.status_code == 400


def test_the_api_describes_versions_hosts_and_policies(
    api_as_admin: APIClient, api_as_alice: APIClient, site: Site
) -> None:
    team = Team.objects.create(name="Tools")
    bodies: dict[str, dict[str, Any]] = {
        "p4d-versions": {"release": "2024.2", "path": "/opt/p4d"},
        "sandbox-hosts": {"name": "isolated", "site": site.name, "uid": 1, "gid": 1},
        "sandbox-policies": {"team": team.name, "team_at_most": 2},
    }
    for where, body in bodies.items():
        url = f"/api/v1/{where}"
        assert api_as_alice.post(url, body).status_code == 403
        saved = api_as_admin.post(url, body)
        assert saved.status_code == 200, saved.json()
        assert {**saved.json(), **body} == saved.json()
        [listed] = api_as_admin.get(url).json()["results"]
        assert listed == saved.json()
        assert api_as_alice.get(url).status_code == 403
        assert api_as_admin.delete(f"{url}/{listed['id']}").status_code == 204
        assert api_as_admin.get(url).json()["results"] == []
    bad = api_as_admin.post(
        "/api/v1/sandbox-hosts", {**bodies["sandbox-hosts"], "address": "a b"}
    )
    assert bad.status_code == 400
    assert "address" in bad.text
