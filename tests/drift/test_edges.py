"""Clients bound to edges are reported by the sites of their edge, once."""

from __future__ import annotations

import uuid

import pytest

from provisioner.drift.comparison.facts import SeenPerforce, tag_of_client
from provisioner.drift.comparison.perforce import compare_perforce
from provisioner.drift.sweeps import known
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib import clocks
from provisioner.sites.models import Site
from tests.support.factories import PerforceServerFactory, SiteFactory

pytestmark = pytest.mark.django_db


def stranger(server_id: str) -> ClientSpec:
    """Return a client of ours without a row, bound to this server."""
    tag = str(uuid.uuid4())
    return ClientSpec(
        name=f"cy-at-{server_id or 'commit'}-w{tag[:6]}",
        owner="alice",
        root="/mnt/w",
        host="",
        description=f"Cloneyard workspace w ({tag}).",
        view=(),
        server_id=server_id,
    )


def test_each_client_without_a_row_is_reported_at_one_site() -> None:
    commit = PerforceServerFactory.create(name="commit")
    edges = [
        PerforceServerFactory.create(
            name=name, kind="edge", server_id=name, upstream=commit
        )
        for name in ("edge-blr", "edge-osl", "edge-without-site")
    ]
    proxy = PerforceServerFactory.create(name="proxy", kind="proxy", upstream=edges[0])
    sites = {
        name: SiteFactory.create(name=name, perforce_server=server)
        for name, server in (
            ("munich", commit),
            ("berlin", commit),
            ("bangalore", edges[0]),
            ("pune", proxy),
            ("oslo", edges[1]),
            ("other", PerforceServerFactory.create(name="other")),
        )
    }
    clients = tuple(stranger(each) for each in ("", *(e.server_id for e in edges)))
    assert all(map(tag_of_client, clients))

    reported = {name: _reported(site, clients) for name, site in sites.items()}

    assert reported == {
        "munich": {"", "edge-without-site"},
        "berlin": set(),
        "bangalore": {"edge-blr"},
        "pune": set(),
        "oslo": {"edge-osl"},
        "other": {"", *(edge.server_id for edge in edges)},
    }


def _reported(site: Site, clients: tuple[ClientSpec, ...]) -> set[str]:
    """Return where the clients are bound that a site reports of these."""
    rows = known.of_perforce(site, seen=(), asof=clocks.database_now())
    found = compare_perforce(rows, SeenPerforce(clients=clients))
    by_name = {client.name: client.server_id for client in clients}
    return {by_name[finding.subject] for finding in found}
