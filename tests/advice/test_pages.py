"""Advice and support matrix of a running installation: pages and API."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from provisioner.engine.models import WorkerQueues
from provisioner.insight.models import ServerConfiguration
from provisioner.sandboxes.models import ServerVolumes
from provisioner.sites.models import PerforceServer, ServerKind, Site, SiteCapacity
from tests.support.factories import (
    MirrorFactory,
    PerforceServerFactory,
    SiteFactory,
    TemplateFactory,
)
from tests.support.workers import start_worker

ADVICE, SUPPORT = "/perforce/storage-advice/", "/perforce/support/"
API_ADVICE, API_SUPPORT = "/api/v1/storage-advice", "/api/v1/support-matrix"
# Old enough, whatever day it is.
OVER = "P4D/LINUX26X86_64/2018.2/1751184 (2019/01/17)"


@pytest.fixture
def server(db: None) -> PerforceServer:
    return PerforceServerFactory.create(name="commit")


@pytest.fixture
def site(server: PerforceServer) -> Site:
    return SiteFactory.create(
        name="munich",
        ontap_host="filer.example",
        perforce_server=server,
        mount_root="/clones",
        mount_options="vers=3,hard",
    )


@pytest.fixture
def read(server: PerforceServer) -> ServerConfiguration:
    now = dt.datetime.now(dt.UTC)
    read = ServerConfiguration.objects.create(
        server=server, read_at=now, version=OVER, users=180
    )
    for name, fs_type, at in (
        ("P4ROOT", "nfs", "/db"),
        ("P4JOURNAL", "xfs", "/logs"),
        ("P4LOG", "tmpfs", "/run"),
        ("depot", "nfs", "/depots"),
        ("art", "nfs", "/depots"),
    ):
        read.filesystems.create(
            name=name, fs_type=fs_type, mount_point=at, percent_used=10
        )
    read.filesystems.filter(mount_point="/depots").update(mount_options="rw,vers=3")
    return read


def host_of_worker(*uses: dict[str, Any], kernel: str = "6.12.57-1-amd64") -> None:
    start_worker("build7", "host.munich")
    WorkerQueues.objects.filter(host="build7").update(
        kernel=kernel, nfs_uses=list(uses)
    )


def results(api: APIClient, address: str, **query: Any) -> list[dict[str, Any]]:
    answer = api.get(address, query)
    assert answer.status_code == 200, answer.json()
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def rows_of(api: APIClient, component: str) -> list[dict[str, Any]]:
    return [r for r in results(api, API_SUPPORT) if r["component"] == component]


def in_use(api: APIClient, role: str, **query: Any) -> list[dict[str, Any]]:
    [advice] = [r for r in results(api, API_ADVICE, **query) if r["role"] == role]
    found: list[dict[str, Any]] = advice["in_use"]
    return found


# --- advice


def test_an_empty_installation_gets_advice_too(as_admin: Client) -> None:
    page = as_admin.get(ADVICE).text
    assert "iSCSI" in page
    assert "No site or Perforce server is set up yet." in page


def test_what_a_server_uses_is_held_against_it(
    api_as_admin: APIClient, read: ServerConfiguration
) -> None:
    [db] = in_use(api_as_admin, "db")
    [journal] = in_use(api_as_admin, "journal")
    [log] = in_use(api_as_admin, "log")
    [depots] = in_use(api_as_admin, "depots")

    assert (db["fit"], db["may_be"]) == ("deviates", ["nfs3", "nfs41"])
    assert journal["fit"] == "unknown"
    assert (log["fit"], log["may_be"]) == ("unknown", [])
    assert (depots["fit"], depots["name"]) == ("fits", "depot, art")


def test_other_weights_find_other_things(
    api_as_admin: APIClient, read: ServerConfiguration
) -> None:
    easy = {"performance": 0, "cost": 0, "backup": 0, "manageability": 10}
    [db] = in_use(api_as_admin, "db", **easy)
    assert db["fit"] == "unknown"  # it may be NFSv3


def test_a_volume_stands_for_a_server_that_was_not_read(
    api_as_admin: APIClient, server: PerforceServer, site: Site
) -> None:
    volumes = ServerVolumes.objects.create(server=server, site=site)
    volumes.places.create(role="db", volume="p4_db", path="root")

    [db] = in_use(api_as_admin, "db")
    assert (db["name"], db["fit"]) == ("p4_db", "deviates")


def test_a_volume_is_named_beside_what_was_read(
    api_as_admin: APIClient, read: ServerConfiguration, site: Site
) -> None:
    volumes = ServerVolumes.objects.create(server=read.server, site=site)
    volumes.places.create(role="db", volume="p4_db", path="root")

    [db] = in_use(api_as_admin, "db")
    assert "the volume p4_db is named" in db["saw"]


def test_workspaces_are_as_their_hosts_mount_them(
    api_as_admin: APIClient, site: Site
) -> None:
    [settings] = in_use(api_as_admin, "workspaces")
    host_of_worker({"at": "/clones/ws", "options": ["vers=4.1", "hard"], "mounts": 3})
    [seen] = in_use(api_as_admin, "workspaces")

    assert (settings["name"], settings["fit"]) == ("workspaces", "fits")
    assert (seen["name"], seen["fit"]) == ("workspaces at build7", "deviates")


def test_the_lab_mounts_nothing(api_as_admin: APIClient, site: Site) -> None:
    Site.objects.update(ontap_host="127.0.0.1")
    [place] = in_use(api_as_admin, "workspaces")
    assert (place["fit"], place["saw"]) == ("unknown", "directories of the lab")


def test_servers_that_pass_on_have_no_storage(
    api_as_admin: APIClient, server: PerforceServer
) -> None:
    PerforceServerFactory.create(name="p", kind=ServerKind.PROXY, upstream=server)
    assert [row["subject"] for row in rows_of(api_as_admin, "p4d")] == ["commit"]


def test_the_address_keeps_weights_and_facts(as_admin: Client) -> None:
    given = {"performance": "3", "users": "77", "shares_archives": "on"}
    page = as_admin.get(ADVICE, given)
    assert re.search(r'<input[^>]*name="performance"[^>]*value="3"', page.text)
    assert re.search(r'<input[^>]*name="users"[^>]*value="77"', page.text)
    assert re.search(r'<input[^>]*name="shares_archives"[^>]*checked', page.text)
    assert "77 users take" in page.text
    assert "Replicas on other hosts share the archives" in page.text


@pytest.mark.parametrize("wrong", ["x", "-1", "11", "1e3", "9" * 40, ""])
def test_a_wrong_weight_is_said_and_the_default_counts(
    as_admin: Client, wrong: str
) -> None:
    page = as_admin.get(ADVICE, {"performance": wrong})
    assert page.status_code == 200
    assert ("errorlist" in page.text) == bool(wrong)
    assert "31 of 51" in page.text


def test_sliders_have_labels_and_bounds(as_admin: Client) -> None:
    page = as_admin.get(ADVICE).text
    sliders = re.findall(r'<input type="range"[^>]*>', page)
    assert len(sliders) == 5
    for slider in sliders:
        [name] = re.findall(r'id="(\w+)"', slider)
        assert f'<label for="{name}">' in page
        assert 'min="0"' in slider
        assert 'max="10"' in slider


def test_what_is_known_of_a_server_is_offered(
    as_admin: Client, read: ServerConfiguration
) -> None:
    PerforceServerFactory.create(
        name="edge", kind=ServerKind.EDGE, upstream=read.server, server_id="edge"
    )
    page = as_admin.get(ADVICE).text
    assert "?users=180&amp;is_distributed=on" in page


def test_the_page_asks_no_more_with_more_in_it(
    as_admin: Client, read: ServerConfiguration, site: Site
) -> None:
    def queries(address: str) -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            as_admin.get(address)
        return len(asked)

    as_admin.get(ADVICE)
    before = [queries(ADVICE), queries(SUPPORT)]
    for _ in range(3):
        other = PerforceServerFactory.create()
        more = ServerConfiguration.objects.create(server=other, read_at=read.read_at)
        more.filesystems.create(
            name="P4ROOT", fs_type="xfs", mount_point="/p4", percent_used=1
        )
        SiteFactory.create(perforce_server=other)
    assert [queries(ADVICE), queries(SUPPORT)] == before


@pytest.mark.parametrize("query", [{"performance": 11}, {"users": -1}, {"cost": "x"}])
def test_the_api_refuses_what_is_no_weight(
    api_as_admin: APIClient, query: dict[str, Any]
) -> None:
    answer = api_as_admin.get(API_ADVICE, query)
    assert answer.status_code == 400


def test_the_api_has_every_score_with_its_doubt(api_as_admin: APIClient) -> None:
    roles = results(api_as_admin, API_ADVICE)

    assert [role["role"] for role in roles] == [
        *("db", "journal", "log", "depots", "temp", "workspaces")
    ]
    for role in roles:
        assert len(role["protocols"]) == 7
        assert role["recommended"] == role["protocols"][0]["protocol"]
        for protocol in role["protocols"]:
            for score in protocol["scores"]:
                assert (score["score"] is None) == (score["doubt"] == "unknown")


def test_without_weights_the_api_recommends_nothing(api_as_admin: APIClient) -> None:
    none = dict.fromkeys(
        ("performance", "access", "manageability", "cost", "backup"), 0
    )
    roles = results(api_as_admin, API_ADVICE, **none)
    assert {role["recommended"] for role in roles} == {None}


# --- the support matrix


def test_an_empty_installation_has_no_matrix(as_admin: Client) -> None:
    assert (
        "There is no site, Perforce server or worker yet." in as_admin.get(SUPPORT).text
    )


def test_what_was_not_read_is_unknown(
    api_as_admin: APIClient, server: PerforceServer, site: Site
) -> None:
    [ontap] = rows_of(api_as_admin, "ONTAP")
    [p4d] = rows_of(api_as_admin, "p4d")
    assert (ontap["found"], ontap["support"]) == ("", "unknown")
    assert (p4d["found"], p4d["support"]) == ("", "unknown")
    assert rows_of(api_as_admin, "Linux") == []


def test_releases_in_use_are_judged(
    api_as_admin: APIClient, read: ServerConfiguration, site: Site
) -> None:
    SiteCapacity.objects.create(site=site, ontap_version="9.5P3")
    host_of_worker(kernel="5.4.3")

    rows = {row["component"]: row for row in results(api_as_admin, API_SUPPORT)}
    assert {name: row["support"] for name, row in rows.items()} == {
        **{"ONTAP": "too_old", "p4d": "too_old", "Linux": "too_old"},
        "NFS": "good",
    }
    assert rows["Linux"]["subject"] == "build7"
    assert rows["NFS"]["subject"] == "munich at build7"
    assert all(row["do"] for row in rows.values() if row["support"] == "too_old")


def test_what_a_host_does_counts_more_than_settings(
    api_as_admin: APIClient, site: Site
) -> None:
    host_of_worker(
        {"at": "/clones/ws", "options": ["vers=3", "hard"], "mounts": 9},
        {"at": "/clones/x", "options": ["vers=3", "local_lock=all"], "mounts": 1},
        {"at": "/home", "options": ["vers=4.1", "soft"], "mounts": 1},
    )
    [nfs] = rows_of(api_as_admin, "NFS")
    assert (nfs["support"], nfs["found"]) == ("unsafe", "vers=3,local_lock=all")


def test_mirrors_between_releases_that_do_not_connect(
    api_as_admin: APIClient, site: Site
) -> None:
    mirror = MirrorFactory.create(template=TemplateFactory.create(site=site))
    SiteCapacity.objects.create(site=site, ontap_version="9.19.1")
    SiteCapacity.objects.create(site=mirror.site, ontap_version="9.13.1")

    [pair] = rows_of(api_as_admin, "SnapMirror")
    assert pair["support"] == "too_old"
    assert "does not connect" in pair["says"]


def test_the_page_says_what_to_do(as_admin: Client, read: ServerConfiguration) -> None:
    page = as_admin.get(SUPPORT).text
    assert "Too old" in page
    assert "Rehearse it in a sandbox first." in page


# --- for whom


@pytest.mark.parametrize("address", [ADVICE, SUPPORT])
def test_pages_are_for_administrators(
    address: str, as_carol: Client, client: Client
) -> None:
    assert as_carol.get(address).status_code == 403
    assert client.get(address).status_code == 302
    assert as_carol.post(address).status_code == 405


@pytest.mark.parametrize("address", [API_ADVICE, API_SUPPORT])
def test_the_api_is_for_administrators(
    address: str, api_as_carol: APIClient, api_as_nobody: APIClient
) -> None:
    assert api_as_carol.get(address).status_code == 403
    assert api_as_nobody.get(address).status_code == 401
