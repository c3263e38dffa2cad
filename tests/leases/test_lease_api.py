"""Leases and their policies by the API: dates, extending, keeping, previews."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from provisioner.accounts.models import Team, User
from provisioner.audit_log.models import Event
from provisioner.catalog.models import Snapshot, Template
from provisioner.leases import queries as lease_queries
from provisioner.leases.actions.leases import LONGEST_SECONDS
from provisioner.leases.models import LeasePolicy
from provisioner.notify.models import Notification
from provisioner.workspaces.models import Workspace
from tests.support.api_clients import api_of
from tests.support.factories import UserFactory
from tests.support.requests import workspace_create

WORKSPACES = "/api/v1/workspaces"
POLICIES = "/api/v1/lease-policies"
DAY = lease_queries.DAY


def address(workspace: Workspace, verb: str = "") -> str:
    return f"{WORKSPACES}/{workspace.pk}{verb}"


def ends_in_days(body: dict[str, Any]) -> float:
    ends_at = dt.datetime.fromisoformat(body["lease"]["ends_at"])
    return (ends_at - timezone.now()).total_seconds() / DAY


def policy(**changes: Any) -> dict[str, Any]:
    return {
        "purpose": "development",
        "default_seconds": 10 * DAY,
        "maximum_seconds": 20 * DAY,
        "trash_seconds": DAY,
        "warn_seconds": [2 * DAY],
        **changes,
    }


# --- looking, and asking for one


def test_a_workspace_shows_its_lease(api_as_alice: APIClient, ready: Workspace) -> None:
    lease = api_as_alice.get(address(ready)).json()["lease"]

    assert dt.datetime.fromisoformat(lease["ends_at"]) == ready.expires_at
    assert lease["kept_because"] == ""
    assert lease["is_extendable"]
    assert not lease["is_over"]
    assert [mail["seconds_before"] for mail in lease["warns_at"]] == [7 * DAY, DAY]
    assert lease["then"] == "trash"
    assert lease["maximum_seconds"] == 90 * DAY
    assert lease["sentence"].startswith("Its lease ends on ")


def test_a_lease_can_be_asked_for(api_as_alice: APIClient, snapshot: Snapshot) -> None:
    body = {"template": snapshot.template_id, "lease": 5 * DAY}

    response = api_as_alice.post(WORKSPACES, body)

    assert response.status_code == 202
    assert ends_in_days(response.json()) == pytest.approx(5, abs=0.1)


def test_a_lease_beyond_the_maximum_is_refused(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    body = {"template": snapshot.template_id, "lease": 91 * DAY}

    response = api_as_alice.post(WORKSPACES, body)

    assert response.status_code == 409
    assert response.json()["code"] == "lease_too_long"
    assert not Workspace.objects.exists()


def test_builds_live_for_a_day_and_get_no_mail(
    api_as_alice: APIClient, snapshot: Snapshot
) -> None:
    body = {"template": snapshot.template_id, "purpose": "build"}

    response = api_as_alice.post(WORKSPACES, body)

    assert ends_in_days(response.json()) == pytest.approx(1, abs=0.1)
    assert response.json()["lease"]["then"] == "remove"
    assert not Notification.objects.exists()


# --- extending, keeping, releasing


def test_it_is_extended_as_is_usual(api_as_alice: APIClient, ready: Workspace) -> None:
    Workspace.objects.filter(pk=ready.pk).update(
        expires_at=timezone.now() + dt.timedelta(days=3)
    )

    response = api_as_alice.post(address(ready, "/extend"), {})

    assert response.status_code == 200
    assert ends_in_days(response.json()) == pytest.approx(30, abs=0.1)
    assert ready.events.filter(kind="lease_extended", actor__username="alice").exists()


def test_it_is_extended_by_seconds_or_until_a_moment(
    api_as_alice: APIClient, ready: Workspace
) -> None:
    response = api_as_alice.post(address(ready, "/extend"), {"seconds": 40 * DAY})
    assert ends_in_days(response.json()) == pytest.approx(40, abs=0.1)

    until = timezone.now() + dt.timedelta(days=50)
    response = api_as_alice.post(
        address(ready, "/extend"), {"until": until.isoformat()}
    )

    assert ends_in_days(response.json()) == pytest.approx(50, abs=0.1)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"seconds": 91 * DAY}, 409, "lease_too_long"),
        ({"seconds": DAY}, 409, "lease_not_longer"),
        ({"seconds": 0}, 400, "invalid"),
        ({"seconds": "9"}, 400, "invalid"),
        ({"seconds": 10**12}, 400, "invalid"),
        ({"until": "2001-01-01T00:00:00Z"}, 400, "invalid"),
        ({"until": "soon"}, 400, "invalid"),
        ({"seconds": DAY, "until": "2100-01-01T00:00:00Z"}, 400, "invalid"),
    ],
)
def test_what_makes_no_sense_is_refused(
    api_as_alice: APIClient,
    ready: Workspace,
    body: dict[str, Any],
    status: int,
    code: str,
) -> None:
    response = api_as_alice.post(address(ready, "/extend"), body)

    assert (response.status_code, response.json()["code"]) == (status, code)
    ends_at = ready.expires_at
    ready.refresh_from_db()
    assert ready.expires_at == ends_at


def test_it_says_how_far_any_lease_can_reach(
    api_as_alice: APIClient, ready: Workspace
) -> None:
    LeasePolicy.objects.create(purpose="development", default_seconds=DAY)
    most = dt.timedelta(days=18_250)

    beyond = timezone.now() + most + dt.timedelta(minutes=1)
    refused = api_as_alice.post(
        address(ready, "/extend"), {"until": beyond.isoformat()}
    )
    within = timezone.now() + most - dt.timedelta(minutes=1)
    extended = api_as_alice.post(
        address(ready, "/extend"), {"until": within.isoformat()}
    )

    assert refused.status_code == 400
    assert "within 18,250 days" in refused.json()["detail"]
    assert extended.status_code == 200


def test_what_is_retired_is_not_extended(
    api_as_alice: APIClient, retired: Workspace
) -> None:
    response = api_as_alice.post(address(retired, "/extend"), {})

    assert (response.status_code, response.json()["code"]) == (409, "workspace_busy")


def test_an_administrator_keeps_it_and_the_owner_releases_it(
    api_as_admin: APIClient, api_as_alice: APIClient, ready: Workspace
) -> None:
    response = api_as_admin.post(address(ready, "/keep"), {"reason": "The trade fair"})

    assert response.status_code == 200
    lease = response.json()["lease"]
    assert (lease["ends_at"], lease["kept_because"]) == (None, "The trade fair")
    assert ready.events.get(kind="workspace_kept").reason == "The trade fair"
    refused = api_as_alice.post(address(ready, "/extend"), {})
    assert refused.json()["code"] == "workspace_kept"

    response = api_as_alice.post(address(ready, "/release"))

    assert response.status_code == 200
    assert ends_in_days(response.json()) == pytest.approx(30, abs=0.1)
    again = api_as_alice.post(address(ready, "/release"))
    assert (again.status_code, again.json()["code"]) == (409, "workspace_not_kept")


def test_an_owner_keeps_it_where_there_is_no_maximum(
    api_as_alice: APIClient, ready: Workspace
) -> None:
    refused = api_as_alice.post(address(ready, "/keep"), {"reason": "Mine"})
    assert refused.status_code == 403
    assert refused.json()["code"] == "not_allowed_to_keep"
    LeasePolicy.objects.create(purpose="development", default_seconds=DAY)

    response = api_as_alice.post(address(ready, "/keep"), {"reason": " Still  mine "})

    assert response.status_code == 200
    assert response.json()["lease"]["kept_because"] == "Still mine"


@pytest.mark.parametrize("reason", ["", "   ", "x" * 501])
def test_a_reason_is_needed(
    api_as_admin: APIClient, ready: Workspace, reason: str
) -> None:
    response = api_as_admin.post(address(ready, "/keep"), {"reason": reason})

    assert (response.status_code, response.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    ("who", "statuses"),
    [
        ("owner", {"/extend": 200, "/keep": 403, "/release": 409}),
        ("administrator", {"/extend": 200, "/keep": 200, "/release": 200}),
        ("stranger", {"/extend": 404, "/keep": 404, "/release": 404}),
        ("nobody", {"/extend": 401, "/keep": 401, "/release": 401}),
    ],
)
def test_who_may_do_what(
    who: str,
    statuses: dict[str, int],
    ready: Workspace,
    alice: User,
    carol: User,
    admin: User,
) -> None:
    people = {"owner": alice, "administrator": admin, "stranger": carol}
    client = api_of(people.get(who))
    bodies = {"/extend": {"seconds": 60 * DAY}, "/keep": {"reason": "x"}}

    answers = {
        verb: client.post(address(ready, verb), bodies.get(verb, {})).status_code
        for verb in statuses
    }

    assert answers == statuses


def test_a_teammate_is_treated_as_the_table_of_permissions_says(
    ready: Workspace, alice: User
) -> None:
    team = Team.objects.create(name="engine")
    User.objects.filter(pk=alice.pk).update(team=team)
    bob = UserFactory.create(username="bob", team=team)
    is_visible = api_of(bob).get(address(ready)).status_code == 200

    response = api_of(bob).post(address(ready, "/extend"), {"seconds": 60 * DAY})

    assert response.status_code in ((200, 403) if is_visible else (404,))


# --- policies


def test_a_preview_says_whom_it_affects_and_changes_nothing(
    api_as_admin: APIClient, ready: Workspace
) -> None:
    response = api_as_admin.post(POLICIES, policy(preview=True))

    assert response.status_code == 200
    body = response.json()
    assert body["moving"] == 1
    [affected] = body["affected"]
    assert (affected["name"], affected["owner"]) == ("hers", "alice")
    assert "instead of" in affected["sentence"]
    assert not LeasePolicy.objects.exists()
    assert lease_queries.policy_for(ready.template, "development").source == "built-in"


def test_saving_pulls_deadlines_in_and_writes_events(
    api_as_admin: APIClient, api_as_alice: APIClient, ready: Workspace
) -> None:
    seal = api_as_admin.post(POLICIES, policy(preview=True)).json()["seal"]

    response = api_as_admin.post(POLICIES, policy(seal=seal))

    assert response.status_code == 200
    body = api_as_alice.get(address(ready)).json()
    assert ends_in_days(body) == pytest.approx(20, abs=0.1)
    assert [mail["seconds_before"] for mail in body["lease"]["warns_at"]] == [2 * DAY]
    event = ready.events.get(kind="lease_policy_applied")
    assert event.actor is not None
    assert event.actor.username == "admin"
    assert ready.notices.filter(voided_at__isnull=True).count() == 1
    saved = Event.objects.get(kind="lease_policy_saved")
    assert (saved.subject_kind, saved.actor_name) == ("policy", "admin")
    assert saved.data["policy"]["maximum_seconds"] == 20 * DAY


def test_a_stale_preview_is_refused(
    api_as_admin: APIClient, ready: Workspace, alice: User, snapshot: Snapshot
) -> None:
    seal = api_as_admin.post(POLICIES, policy(preview=True)).json()["seal"]
    workspace_create(by=alice, template=snapshot.template, name="another")

    response = api_as_admin.post(POLICIES, policy(seal=seal))

    assert (response.status_code, response.json()["code"]) == (409, "preview_stale")
    assert not LeasePolicy.objects.exists()


def test_a_template_has_its_own(
    api_as_admin: APIClient, ready: Workspace, template: Template
) -> None:
    api_as_admin.post(POLICIES, policy())
    response = api_as_admin.post(
        POLICIES, policy(template=template.name, maximum_seconds=15 * DAY)
    )
    assert response.json()["moving"] == 1

    rows = api_as_admin.get(POLICIES).json()["results"]

    assert {row["template"] for row in rows} == {None, template.name}
    own = next(row for row in rows if row["template"])
    assert api_as_admin.get(f"{POLICIES}/{own['id']}").json() == own
    preview = api_as_admin.delete(f"{POLICIES}/{own['id']}?preview=true")
    assert preview.status_code == 200
    assert LeasePolicy.objects.count() == 2
    assert api_as_admin.delete(f"{POLICIES}/{own['id']}").status_code == 200
    assert LeasePolicy.objects.get().template is None
    assert Event.objects.filter(kind="lease_policy_removed").count() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"default_seconds": 30 * DAY},
        {"default_seconds": None},
        {"default_seconds": 0},
        {"trash_seconds": -1},
        {"warn_seconds": [0]},
        {"warn_seconds": list(range(1, 20))},
        {"warn_seconds": [LONGEST_SECONDS + 1]},
        {"purpose": "play"},
        {"template": "nowhere"},
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(
    api_as_admin: APIClient, wrong: dict[str, Any]
) -> None:
    response = api_as_admin.post(POLICIES, policy(**wrong))

    assert (response.status_code, response.json()["code"]) == (400, "invalid")
    assert not LeasePolicy.objects.exists()


@pytest.mark.parametrize(
    "longest",
    [
        {"default_seconds": LONGEST_SECONDS, "maximum_seconds": LONGEST_SECONDS},
        {"trash_seconds": LONGEST_SECONDS},
        {"warn_seconds": [LONGEST_SECONDS]},
    ],
)
def test_the_longest_times_can_be_written_down(
    api_as_admin: APIClient, longest: dict[str, Any]
) -> None:
    assert api_as_admin.post(POLICIES, policy(**longest)).status_code == 200
    assert LeasePolicy.objects.count() == 1


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("nobody", 401)])
def test_policies_are_for_administrators(
    request: pytest.FixtureRequest, who: str, status: int
) -> None:
    client: APIClient = request.getfixturevalue(f"api_as_{who}")
    row = LeasePolicy.objects.create(purpose="development", default_seconds=DAY)

    answers = {
        client.get(POLICIES).status_code,
        client.post(POLICIES, policy()).status_code,
        client.get(f"{POLICIES}/{row.pk}").status_code,
        client.delete(f"{POLICIES}/{row.pk}").status_code,
    }

    assert answers == {status}
    assert LeasePolicy.objects.get() == row
