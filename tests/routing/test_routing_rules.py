"""Routing rules: which matches, what is refused, and their pages and API."""

from __future__ import annotations

import pytest
from django.test import Client
from rest_framework.test import APIClient

from provisioner.accounts.models import Team, User
from provisioner.engine import states as engine_states
from provisioner.engine import tasks
from provisioner.gateways.perforce.meter import Usage
from provisioner.lib.refusals import InvalidRequest
from provisioner.routing.actions import (
    routing_rule_add,
    routing_rule_move_up,
    routing_rule_remove,
)
from provisioner.routing.kinds import Purpose, why_not
from provisioner.routing.models import RoutingRule, TrafficDay
from provisioner.routing.queries import route_for
from provisioner.routing.refusals import RoutingRuleUnfit
from provisioner.sites.models import PerforceServer, ServerKind, Site
from tests.support.factories import (
    PerforceServerFactory,
    SiteFactory,
    SnapshotFactory,
    UserFactory,
)
from tests.support.requests import workspace_create

pytestmark = pytest.mark.django_db

K, P = ServerKind, Purpose


@pytest.fixture
def site() -> Site:
    return SiteFactory.create()


def following(site: Site, kind: ServerKind = K.BUILD) -> PerforceServer:
    """Return a new server of the installation that a site uses."""
    server: PerforceServer = PerforceServerFactory.create(
        kind=kind, upstream=site.perforce_server, server_id=f"id-{kind}"
    )
    return server


@pytest.mark.parametrize(
    ("kind", "able"),
    [
        (K.COMMIT, set(P)),
        (K.FORWARDING, set(P)),
        (K.EDGE, set(P) - {P.DEVELOPMENT}),
        (K.BUILD, {P.TEMPLATE, P.CI, P.BUILD, P.BISECTION}),
        (K.REPLICA, {P.BUILD}),
    ],
)
def test_each_kind_of_server_does_what_perforce_lets_it(
    kind: ServerKind, able: set[Purpose]
) -> None:
    assert {purpose for purpose in P if not why_not(kind, purpose)} == able
    assert bool(why_not(kind, "")) == (able != set(P))


def test_the_first_rule_that_matches_counts(admin: User, site: Site) -> None:
    team = Team.objects.create(name="tools")
    ci, other = UserFactory.create(team=team), UserFactory.create()
    general, of_ci, elsewhere = (following(site) for _ in range(3))
    foreign = following(SiteFactory.create())
    routing_rule_add(by=admin, purpose=P.CI, server=foreign)
    routing_rule_add(
        by=admin,
        purpose=P.CI,
        site=SiteFactory.create(perforce_server=site.perforce_server),
        server=elsewhere,
    )
    routing_rule_add(by=admin, purpose=P.CI, server=general)
    last = routing_rule_add(by=admin, purpose=P.CI, team=team, server=of_ci)

    def chosen(owner: User, purpose: str = P.CI) -> PerforceServer:
        return route_for(site, purpose=purpose, owner=owner).server

    assert chosen(ci) == chosen(other) == general
    routing_rule_move_up(by=admin, rule=last)
    assert (chosen(ci), chosen(other)) == (of_ci, general)
    assert chosen(ci, P.BUILD) == site.perforce_server
    PerforceServer.objects.filter(pk=of_ci.pk).update(kind=K.REPLICA)
    with pytest.raises(RoutingRuleUnfit, match="cannot define clients"):
        chosen(ci)
    routing_rule_remove(by=admin, rule=last)
    assert chosen(ci) == general


def test_a_rule_that_cannot_work_is_refused(admin: User, site: Site) -> None:
    builder, reader = following(site), following(site, K.REPLICA)
    other = SiteFactory.create()

    def refused(**fields: object) -> str:
        with pytest.raises(InvalidRequest) as error:
            routing_rule_add(by=admin, **fields)
        return str(error.value.sentence)

    assert "cannot define clients" in refused(purpose=P.TEMPLATE, server=reader)
    assert "not edit, shelve and submit" in refused(purpose="", server=builder)
    moving = {"purpose": P.TEMPLATE, "server": builder, "when_behind": "use-upstream"}
    assert "have list are at the server itself" in refused(**moving)
    assert "another Perforce installation" in refused(
        purpose=P.CI, server=builder, site=other
    )
    assert "STEP_GIVE_UP_SECONDS" in refused(
        purpose=P.CI, server=builder, catch_up_seconds=80_000
    )
    both = {"account": admin, "team": Team.objects.create(name="tools")}
    assert "not both" in refused(purpose=P.CI, server=builder, **both)
    routing_rule_add(by=admin, purpose=P.CI, server=builder)
    assert "Rule 1 is for the same already" in refused(purpose=P.CI, server=builder)
    assert RoutingRule.objects.count() == 1


def test_an_administrator_adds_orders_and_removes_rules(
    as_admin: Client, admin: User, site: Site
) -> None:
    builder = following(site)
    fields = {
        "server": builder.pk,
        "catch_up_seconds": 5,
        "when_behind": "use-upstream",
    }
    page = as_admin.post("/perforce/rules/", {**fields, "purpose": "development"})
    assert page.status_code == 409
    assert "not edit, shelve and submit" in page.text
    for purpose in ("ci", "build"):
        added = as_admin.post("/perforce/rules/", {**fields, "purpose": purpose})
        assert added.status_code == 302
    first, second = RoutingRule.objects.all()

    as_admin.post(f"/perforce/rules/{second.pk}/up/")

    assert list(RoutingRule.objects.all()) == [second, first]
    page = as_admin.get("/perforce/rules/")
    assert "Wait 5 s, then: Use the site&#x27;s server" in page.text
    as_admin.post(f"/perforce/rules/{first.pk}/remove/")
    assert list(RoutingRule.objects.all()) == [second]


def test_the_api_adds_orders_and_removes_rules(
    api_as_admin: APIClient, site: Site
) -> None:
    builder = following(site)
    made = [
        api_as_admin.post(
            "/api/v1/routing-rules", {"purpose": purpose, "server": builder.name}
        ).json()
        for purpose in ("ci", "build")
    ]
    assert made[0]["when_behind"] == "wait-then-fail"
    there = f"/api/v1/routing-rules/{made[1]['id']}"
    assert api_as_admin.post(f"{there}/up").json()["position"] == 1
    listed = api_as_admin.get("/api/v1/routing-rules").json()["results"]
    assert [rule["purpose"] for rule in listed] == ["build", "ci"]
    assert api_as_admin.delete(there).status_code == 204
    wrong = {"purpose": "ci-edit", "server": builder.name}
    refused = api_as_admin.post("/api/v1/routing-rules", wrong)
    assert refused.status_code == 400
    assert "not edit, shelve and submit" in refused.json()["detail"]


def test_the_share_moved_is_shown_filtered_and_exported(
    as_admin: Client, api_as_admin: APIClient, site: Site
) -> None:
    owner = UserFactory.create(username="robot")
    for server, size in ((site.perforce_server, 200), (following(site), 9800)):
        for day in ("2026-11-25", "2026-11-26"):
            TrafficDay.objects.create(
                day=day,
                server=server,
                purpose="template",
                account=owner,
                commands=size // 100,
                synced_files=size,
                synced_bytes=size * 2**20,
            )

    page = as_admin.get("/perforce/traffic/")
    one_day = as_admin.get("/perforce/traffic/?since=2026-11-26&as=csv")
    asked = {"text": "robot", "until": "2026-11-25"}
    moved = api_as_admin.get("/api/v1/perforce-traffic/moved", asked).json()
    rows = api_as_admin.get("/api/v1/perforce-traffic", asked).json()["results"]

    assert page.text.count("98 %") >= 5, "sums, and a row for each day"
    lines = b"".join(one_day).decode().splitlines()
    assert lines[0].startswith("day,server,purpose,account,commands,")
    assert len(lines) == 3
    assert moved["commands"] == {"total": 100, "moved": 98, "percent": 98}
    assert moved["flushed_files"]["percent"] is None
    assert {row["day"] for row in rows} == {"2026-11-25"}
    assert len(rows) == 2


def test_an_attempt_is_counted_once_however_often_its_end_is_told() -> None:
    ci = UserFactory.create(username="ci", uid=20003, gid=20000)
    template = SnapshotFactory.create().template
    server = template.site.perforce_server
    workspace = workspace_create(by=ci, template=template, purpose="ci")
    step = workspace.operations.get().steps.get(name="access")
    engine_states.start_step(step)
    usages = {server.p4port: Usage(commands=7, synced_files=2, synced_bytes=9)}

    for _ in range(2):
        tasks._settle_failure(step, usages, code="x", message="X.", why=ValueError())

    day = TrafficDay.objects.get()
    assert (day.server, day.purpose, day.account) == (server, "ci", ci)
    assert (day.commands, day.synced_files, day.synced_bytes) == (7, 2, 9)
