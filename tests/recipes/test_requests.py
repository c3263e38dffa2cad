"""Plans of checkpoints, what is due, who may have what; pages and API."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import Team, User
from provisioner.audit_log.models import Event
from provisioner.dashboard.troubles import of_sandboxes
from provisioner.insight.models import ServerConfiguration
from provisioner.lib.refusals import ActionRefused
from provisioner.notify.models import Notification
from provisioner.recipes import actions
from provisioner.recipes.models import CheckpointPlan, VerificationPlan
from provisioner.recipes.sweeps import request_due, tell_late
from provisioner.sandboxes.actions.creating import sandbox_create
from provisioner.sandboxes.actions.describing import server_volumes_save
from provisioner.sandboxes.models import P4dVersion, Sandbox, SandboxHost, SandboxPolicy
from provisioner.sandboxes.planning import WAITS_AT_MOST
from provisioner.sites.models import PerforceServer
from tests.support.factories import (
    CheckpointFactory,
    SandboxHostFactory,
    SiteFactory,
    UserFactory,
    VerificationFactory,
)

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 11, 29, 2, 30, 30, tzinfo=dt.UTC)
LONG_AGO = NOW - dt.timedelta(days=3)


@pytest.fixture
def admin() -> User:
    return UserFactory.create(username="admin", is_staff=True)


@pytest.fixture
def host() -> SandboxHost:
    return SandboxHostFactory.create(name="isolated", at_most=1)


@pytest.fixture
def server(host: SandboxHost, admin: User) -> PerforceServer:
    server: PerforceServer = host.site.perforce_server
    places = "db p4/root\njournal p4/journal\ndepot p4"
    server_volumes_save(by=admin, server=server, site=host.site, places=places)
    return server


@pytest.fixture
def version() -> P4dVersion:
    return P4dVersion.objects.create(release="2024.2", path="/opt/p4d")


@pytest.fixture
def plan(
    server: PerforceServer, host: SandboxHost, version: P4dVersion, admin: User
) -> CheckpointPlan:
    """A plan for half past two each night, changed long before NOW."""
    actions.checkpoint_plan_save(
        by=admin,
        server=server,
        host=host,
        version=version,
        directory="/checkpoints",
        is_on=True,
    )
    CheckpointPlan.objects.update(changed_at=LONG_AGO)
    return CheckpointPlan.objects.get()


def test_what_is_due_is_requested_once(plan: CheckpointPlan) -> None:
    assert request_due(now=NOW) == 1
    assert request_due(now=NOW + dt.timedelta(hours=2)) == 0

    sandbox = Sandbox.objects.get()
    assert sandbox.purpose == Sandbox.Purpose.CHECKPOINT
    assert sandbox.name == f"checkpoint-{plan.server_id}-20261129-023000"
    [operation] = sandbox.operations.all()
    assert operation.kind == "sandbox_checkpoint"
    assert request_due(now=NOW + dt.timedelta(days=1)) == 0  # one is under way
    Sandbox.objects.update(state=Sandbox.State.RETIRED, retired_at=NOW)
    assert request_due(now=NOW + dt.timedelta(days=1)) == 1


def test_one_that_finds_no_place_is_tried_for_an_hour_and_then_failed(
    plan: CheckpointPlan,
) -> None:
    P4dVersion.objects.all().delete()

    assert request_due(now=NOW) == 0

    plan.refresh_from_db()
    assert not plan.has_failed
    assert "tried each minute" in plan.status
    later = NOW + WAITS_AT_MOST
    assert [request_due(now=later), request_due(now=later)] == [0, 0]
    failed = CheckpointPlan.objects.get()
    assert failed.has_failed
    assert "could not be begun. The plan" in failed.status
    assert Event.objects.filter(kind="checkpoint_failed").count() == 1
    assert [each.url for each in of_sandboxes()] == ["/checkpoints/"]


def test_a_plan_that_is_off_or_was_just_changed_requests_nothing(
    plan: CheckpointPlan,
) -> None:
    CheckpointPlan.objects.update(changed_at=NOW)
    assert request_due(now=NOW) == 0
    CheckpointPlan.objects.update(changed_at=LONG_AGO, is_on=False)
    assert request_due(now=NOW) == 0


def test_only_administrators_make_checkpoints_and_only_where_the_plan_says(
    plan: CheckpointPlan, server: PerforceServer, host: SandboxHost, admin: User
) -> None:
    team = Team.objects.create(name="Tools")
    alice = UserFactory.create(team=team)
    SandboxPolicy.objects.create(team=team)
    assert plan.version is not None
    asked: dict[str, Any] = {
        "server": server,
        "name": "mine",
        "purpose": "checkpoint",
        "version": plan.version,
        "host": host,
        "hours": 8,
    }

    def code(by: User, **changed: Any) -> str:
        with pytest.raises(ActionRefused) as refused:
            sandbox_create(by=by, **asked | changed)
        return refused.value.code

    assert code(alice) == "checkpoints_for_administrators"
    other = SandboxHostFactory.create(site=host.site)
    assert code(admin, host=other) == "no_checkpoint_plan"
    with pytest.raises(ActionRefused):
        actions.checkpoint_make(by=alice, server=server)
    asked["purpose"] = "verify"
    verifying = sandbox_create(by=alice, **asked)
    names = [step.name for step in verifying.operations.get().steps.all()]
    assert names[-2:] == ["answer", "verify"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("cron", "at night"),
        ("directory", "checkpoints"),
        ("directory", "/a/../b"),
        ("keep_daily", 0),
    ],
)
def test_a_plan_that_cannot_be_is_refused_at_its_field(
    plan: CheckpointPlan, as_admin: Client, field: str, value: Any
) -> None:
    posted = {
        **{"host": "isolated", "version": "2024.2", "directory": "/checkpoints"},
        **{"cron": "0 1 * * *", "keep_daily": 3, "keep_weekly": 0, "is_on": "on"},
        **{"oldest_hours": 30},
    }
    where = f"/checkpoints/servers/{plan.server_id}/"

    refused = as_admin.post(where, posted | {field: value})

    assert refused.status_code >= 400, refused.text
    plan.refresh_from_db()
    assert plan.cron == "30 2 * * *"
    assert as_admin.post(where, posted).status_code == 302
    plan.refresh_from_db()
    assert (plan.cron, plan.keep_daily, plan.keep_weekly) == ("0 1 * * *", 3, 0)
    assert "/checkpoints" in as_admin.get("/checkpoints/").text


def test_a_checkpoint_is_made_with_a_button(
    plan: CheckpointPlan, as_admin: Client
) -> None:
    where = f"/checkpoints/servers/{plan.server_id}/make/"

    page = as_admin.post(where, follow=True)

    assert "Requested." in page.text
    assert Sandbox.objects.get().owner.username == "admin"
    refused = as_admin.post(where, follow=True).text
    assert "is made for this just now" in refused


def test_the_api_plans_and_lists(
    plan: CheckpointPlan, server: PerforceServer, api_as_admin: APIClient
) -> None:
    where = f"/api/v1/checkpoint-plans/{server.pk}"

    answer = api_as_admin.patch(where, {"cron": "0 1 * * *", "host": "isolated"})

    assert answer.status_code == 200, answer.text
    assert answer.json()["cron"] == "0 1 * * *"
    assert api_as_admin.patch(where, {"version": "2020.1"}).status_code == 400
    [listed] = api_as_admin.get("/api/v1/checkpoint-plans").json()["results"]
    assert (listed["server"], listed["host"]) == (server.name, "isolated")
    made = CheckpointFactory.create(sandbox__perforce_server=server)
    query = {"server": server.name, "kept": "yes"}
    [found] = api_as_admin.get("/api/v1/checkpoints", query).json()["results"]
    assert (found["path"], found["tables"]) == (made.path, made.tables)
    other = SiteFactory.create().perforce_server
    query["server"] = other.name
    assert api_as_admin.get("/api/v1/checkpoints", query).json()["results"] == []


def test_others_see_neither_checkpoints_nor_verifications(
    as_alice: Client, api_as_alice: APIClient
) -> None:
    CheckpointFactory.create()
    verification = VerificationFactory.create()

    assert as_alice.get("/checkpoints/").status_code == 403
    assert as_alice.get(f"/verifications/{verification.pk}/").status_code == 404
    assert api_as_alice.get("/api/v1/checkpoints").status_code == 403
    assert api_as_alice.get("/api/v1/verifications").json()["results"] == []
    where = f"/api/v1/verifications/{verification.pk}/damaged"
    assert api_as_alice.get(where).status_code == 404


def told() -> list[tuple[str, str]]:
    """Return whom mails went to, with their subjects."""
    rows = Notification.objects.filter(kind="server_trouble").order_by("pk")
    return [
        (each.recipient.username, each.data["title"])
        for each in rows.select_related("recipient")
        if each.recipient is not None
    ]


def test_administrators_alone_hear_of_a_checkpoint_that_failed(
    plan: CheckpointPlan,
) -> None:
    UserFactory.create(username="alice")

    actions.note_checkpoint_failed(plan.server, message="No room.")

    title = f"The checkpoint of {plan.server.name} failed"
    assert told() == [("admin", title)]
    notice = Notification.objects.get(kind="server_trouble")
    assert notice.data["sentence"] == "No room."


def test_a_checkpoint_that_is_too_old_is_told_once_until_there_is_a_newer_one(
    plan: CheckpointPlan, admin: User, server: PerforceServer
) -> None:
    def hours(number: float) -> dt.datetime:
        return LONG_AGO + dt.timedelta(hours=number)

    assert tell_late(now=hours(35)) == 0  # so long it may take from the plan on
    assert tell_late(now=hours(36)) == 1
    assert tell_late(now=hours(37)) == 0
    assert told() == [("admin", f"No recent checkpoint of {server.name}")]
    assert [each.url for each in of_sandboxes()] == ["/checkpoints/"]
    CheckpointFactory.create(
        sandbox__perforce_server=server,
        sandbox__taken_at=hours(40),
        is_proven=False,
        remark="It differs.",
    )
    actions.note_checkpoint(server, message="Made.")
    assert of_sandboxes() == []
    assert tell_late(now=hours(41)) == 1  # the one that was made is not proven
    actions.note_checkpoint(server, message="Made.")
    CheckpointFactory.create(
        sandbox__perforce_server=server, sandbox__taken_at=hours(50)
    )
    assert tell_late(now=hours(80)) == 0
    assert tell_late(now=hours(86)) == 1
    CheckpointPlan.objects.update(is_on=False, late_at=None)
    assert tell_late(now=hours(99)) == 0


def test_archives_are_verified_by_plan(
    server: PerforceServer,
    host: SandboxHost,
    version: P4dVersion,
    as_admin: Client,
    api_as_admin: APIClient,
) -> None:
    P4dVersion.objects.create(release="2025.1", path="/opt/p4d-newer")
    ServerConfiguration.objects.create(
        server=server, version="P4D/LINUX26X86_64/2024.2/2697822 (2024/12/19)"
    )
    SandboxHostFactory.create(name="elsewhere")
    where = f"/verifications/servers/{server.pk}/"
    page = as_admin.get(where).text
    assert 'value="elsewhere"' not in page
    assert '<option value="2024.2" selected>' in page
    posted = {
        **{"host": "isolated", "version": "2024.2"},
        **{"cron": "0 3 * * 6", "is_on": "on"},
    }
    assert as_admin.post(f"{where}make/", follow=True).status_code == 200
    assert not Sandbox.objects.exists()  # no plan says where
    assert as_admin.post(where, posted | {"cron": "weekly"}).status_code >= 400
    assert as_admin.post(where, posted).status_code == 302
    api = f"/api/v1/verification-plans/{server.pk}"
    changed = api_as_admin.patch(api, {"cron": "30 2 * * 0"})
    assert changed.status_code == 200, changed.text
    [listed] = api_as_admin.get("/api/v1/verification-plans").json()["results"]
    assert (listed["cron"], listed["is_on"]) == ("30 2 * * 0", True)
    assert "30 2 * * 0" in as_admin.get("/verifications/").text
    VerificationPlan.objects.update(changed_at=LONG_AGO)

    assert request_due(now=NOW) == 1  # a Sunday
    assert request_due(now=NOW) == 0

    sandbox = Sandbox.objects.get()
    assert sandbox.purpose == Sandbox.Purpose.VERIFY
    assert sandbox.name == f"verify-{server.pk}-20261129-023000"


def test_damage_and_a_verification_that_fails_are_told(
    server: PerforceServer, host: SandboxHost, version: P4dVersion, admin: User
) -> None:
    actions.verification_plan_save(by=admin, server=server, host=host, version=version)
    whole = VerificationFactory.create(sandbox__perforce_server=server)
    whole.depots.create(name="depot", kind="local", seconds=3.0)
    damaged = VerificationFactory.create(sandbox__perforce_server=server)
    damaged.depots.create(name="depot", kind="local", seconds=3.0, bad=2, missing=1)

    actions.note_verified(whole.sandbox)
    assert told() == []
    actions.note_verified(damaged.sandbox)
    actions.note_verification_failed(server, message="It stopped.")

    assert told() == [
        ("admin", f"Archives of {server.name} are damaged"),
        ("admin", f"The verification of {server.name} failed"),
    ]
    first = Notification.objects.filter(kind="server_trouble").earliest("pk")
    assert first.data["path"] == f"/verifications/{damaged.pk}/"
    assert "2 damaged revisions, 1 lost" in first.data["sentence"]
    assert VerificationPlan.objects.get().has_failed
