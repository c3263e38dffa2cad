"""What a Perforce server is, whom it follows, and what that allows."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils.timezone import now
from rest_framework.test import APIClient

from provisioner.accounts.models import User
from provisioner.gateways.perforce.types import ServerInfo
from provisioner.lib.refusals import InvalidRequest
from provisioner.sites.actions.sites import perforce_server_save, site_save
from provisioner.sites.connections.checklist import Remark, Wrong
from provisioner.sites.connections.server_kinds import row_sentence
from provisioner.sites.models import PerforceServer, ReplicaPosition, ServerKind
from provisioner.sites.queries import same_installation
from tests.support.definitions import SERVER
from tests.support.factories import PerforceServerFactory, SiteFactory

pytestmark = pytest.mark.django_db

K = ServerKind


def server(kind: ServerKind, of: PerforceServer | None = None) -> PerforceServer:
    server_id = kind.value if kind.binds_clients else ""
    return PerforceServerFactory.create(kind=kind, upstream=of, server_id=server_id)


def info(**said: object) -> ServerInfo:
    usual = {"version": "", "is_case_sensitive": True, "is_unicode": False}
    return ServerInfo(**{**usual, "server_id": "", "services": "", **said})  # type: ignore[arg-type]


def test_servers_with_one_commit_server_are_of_one_installation() -> None:
    commit = server(K.COMMIT)
    edge = server(K.EDGE, commit)
    broker = server(K.BROKER, server(K.PROXY, edge))
    other = server(K.EDGE, server(K.COMMIT))

    assert all(same_installation(*two) for two in pairwise([commit, edge, broker]))
    assert not same_installation(edge, other)
    assert broker.served_by == edge


@pytest.mark.parametrize(
    ("kind", "followed"),
    [
        (K.FORWARDING, {K.COMMIT, K.FORWARDING}),
        (K.EDGE, {K.COMMIT, K.FORWARDING, K.EDGE}),
        (K.BUILD, {K.COMMIT, K.FORWARDING, K.EDGE, K.REPLICA}),
        (K.BROKER, set(K)),
    ],
)
def test_a_kind_follows_what_it_can_replicate_from(
    kind: ServerKind, followed: set[ServerKind], admin: User
) -> None:
    commit = server(K.COMMIT)
    it = PerforceServerFactory.build(kind=kind, server_id="it")
    found = set()
    for other in K:
        it.upstream = commit if other == K.COMMIT else server(other, commit)
        with suppress(InvalidRequest):
            perforce_server_save(by=admin, server=it)
            found.add(other)
    assert found == followed


def test_the_form_says_what_is_missing(as_admin: Client) -> None:
    sent = {**SERVER, "kind": "edge", "do": "save"}
    page = as_admin.post("/perforce/new/", sent)
    assert page.status_code == 422
    assert "Choose the server that an edge server follows." in page.text

    commit = server(K.COMMIT)
    sent |= {"upstream": str(commit.pk)}
    page = as_admin.post("/perforce/new/", sent)
    assert "Clients made at an edge server are bound to it." in page.text

    as_admin.post("/perforce/new/", {**sent, "server_id": "edge-blr"})
    edge = PerforceServer.objects.get(name=SERVER["name"])
    page = as_admin.get(f"/perforce/{edge.pk}/")
    assert f'/perforce/{commit.pk}/">{commit.name}</a>' in page.text
    assert "edge-blr" in page.text
    assert (
        f"{edge.name}</a> (Edge server)" in as_admin.get(f"/perforce/{commit.pk}/").text
    )


def test_a_loop_and_a_kind_that_others_follow_are_refused(admin: User) -> None:
    commit = server(K.COMMIT)
    first = server(K.EDGE, commit)
    second = server(K.EDGE, first)

    first.upstream = second
    with pytest.raises(InvalidRequest, match="follows this one"):
        perforce_server_save(by=admin, server=first)
    first.refresh_from_db()
    first.kind = K.BUILD
    with pytest.raises(InvalidRequest, match="an edge server cannot follow a build"):
        perforce_server_save(by=admin, server=first)


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "edge"},
        {"kind": "edge", "server_id": "edge"},
        {"server_id": "", "upstream": "other", "kind": "build-server"},
        {"upstream": "other"},
        {"upstream": "itself", "kind": "proxy"},
        {"kind": "unheard-of", "upstream": "other"},
        {"when_behind": "use-upstream"},
    ],
)
def test_the_database_refuses_what_does_not_go_together(
    wrong: dict[str, str],
) -> None:
    it, other = server(K.COMMIT), server(K.COMMIT)
    rows = {"other": other, "itself": it}
    changed = {name: rows.get(value, value) for name, value in wrong.items()}
    with pytest.raises(IntegrityError), transaction.atomic():
        PerforceServer.objects.filter(pk=it.pk).update(**changed)


def test_a_site_needs_a_server_that_holds_clients(admin: User) -> None:
    site = SiteFactory.create()
    used = site.perforce_server
    for kind in (K.REPLICA, K.PROXY):
        replica = server(K.REPLICA, server(K.COMMIT))
        site.perforce_server = replica if kind == K.REPLICA else server(kind, replica)
        with pytest.raises(InvalidRequest, match="holds no clients"):
            site_save(by=admin, site=site)
    used.kind, used.upstream = K.REPLICA, server(K.COMMIT)
    with pytest.raises(InvalidRequest, match="uses it"):
        perforce_server_save(by=admin, server=used)


@pytest.mark.parametrize(
    ("kind", "said", "outcome", "words"),
    [
        (K.EDGE, {"services": "edge-server", "server_id": "edge"}, None, "as entered"),
        (K.EDGE, {"services": "commit-server"}, Wrong, "a commit or standard server"),
        (K.EDGE, {"services": "edge-server", "server_id": "x"}, Wrong, "says x"),
        (K.COMMIT, {"services": "P4AUTH"}, None, "as entered"),
        (K.COMMIT, {"is_proxied": True}, Wrong, "it is a proxy"),
        (K.PROXY, {"is_proxied": True, "services": "standard"}, None, "as entered"),
        (K.BROKER, {"is_brokered": True, "is_proxied": True}, None, "as entered"),
        (K.BROKER, {"services": "standard"}, Wrong, "entered as a broker"),
        (
            K.REPLICA,
            {"services": "replica", "replica_of": "elsewhere:1666"},
            Remark,
            "replicates from elsewhere:1666",
        ),
    ],
)
def test_a_row_is_held_against_what_the_server_says(
    kind: ServerKind,
    said: dict[str, object],
    outcome: type[Wrong] | None,
    words: str,
) -> None:
    row = server(kind, None if kind == K.COMMIT else server(K.COMMIT))
    if outcome is None:
        assert words in row_sentence(row, info(**said))
        return
    with pytest.raises(outcome, match=words) as found:
        row_sentence(row, info(**said))
    assert found.type is outcome
    assert found.value.advice


def test_the_api_says_what_a_server_is(api_as_admin: APIClient) -> None:
    commit = server(K.COMMIT)
    edge = server(K.EDGE, commit)
    ReplicaPosition.objects.create(
        server=edge, change=1840002, upstream_change=1840013, measured_at=now()
    )
    [of_commit, of_edge] = api_as_admin.get("/api/v1/perforce-servers").json()[
        "results"
    ]
    assert (of_commit["kind"], of_commit["upstream"]) == ("commit", None)
    assert of_commit["position"] is None
    assert of_edge["position"]["behind"] == 11
    assert of_edge["position"]["sentence"] == (
        f"{edge.name} is at change 1840002, 11 behind 1840013 of {commit.name}."
    )
    assert (of_edge["kind"], of_edge["upstream"]) == ("edge", commit.name)
    assert (of_edge["server_id"], of_edge["people_p4port"]) == ("edge", edge.p4port)
