"""/api/v1/sites/{site}/mounts, and the program map of autofs that asks there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.test import Client
from hypothesis import HealthCheck, given
from hypothesis import settings as tried
from hypothesis import strategies as st
from pytest_django.live_server_helper import LiveServer
from rest_framework.test import APIClient

from provisioner.accounts.models import ApiToken, User
from provisioner.accounts.tokens import token_create
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import set_workspace_state
from tests.support.api_clients import JsonClient
from tests.support.proxy import HOLD, Between, standing_before

SCRIPT: Path = settings.BASE_DIR / "docker" / "auto.cloneyard"
ENTRY = "-fstype=nfs,vers=3,hard,nosuid nfs.munich.example:/w-hers"
HOSTILE = (
    *("", "-o", "--help", "w-", "hers", "../x", "w-../hers", "w-hers/", "w-hers/.."),
    *("w-hers ", "w-hers\n", "w-hers\nw-other", "w-HERS", "w-hers%00", "w-hers?a=b"),
    *("w-hers#", "w-$(id)", "w-`id`", "w-*", "w-\u00df", "w-hers;id", "w-" + "a" * 500),
)


@pytest.fixture
def site(ready: Workspace) -> Site:
    Site.objects.filter(pk=ready.site_id).update(
        nfs_server="nfs.munich.example", mount_options="vers=3,hard,bg,nosuid"
    )
    return Site.objects.get(pk=ready.site_id)


@pytest.fixture
def host_token(admin: User) -> str:
    return token_create(by=admin, reads_mounts=True)[1]


@pytest.fixture
def host(host_token: str) -> APIClient:
    """A host with its token."""
    client = JsonClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {host_token}")
    return client


def address(site: Site, directory: str = "w-hers") -> str:
    return f"/api/v1/sites/{site.name}/mounts/{quote(directory, safe='')}"


def codes(response: Any) -> tuple[int, str]:
    return response.status_code, response.json().get("code", "")


# --- the endpoint


def test_a_host_learns_where_a_workspace_is_mounted_from(
    host: APIClient, site: Site
) -> None:
    answer = host.get(address(site))

    assert answer.status_code == 200
    assert answer.json() == {
        "workspace": "hers",
        "directory": "w-hers",
        "remote": "nfs.munich.example:/w-hers",
        # Somebody waits for it: a mount in the background would come too late.
        "options": "vers=3,hard,nosuid",
        "entry": ENTRY,
    }


def test_who_may_see_a_workspace_may_see_its_mount(
    site: Site,
    api_as_alice: APIClient,
    api_as_admin: APIClient,
    api_as_carol: APIClient,
    api_as_nobody: APIClient,
) -> None:
    assert api_as_alice.get(address(site)).json()["entry"] == ENTRY
    assert api_as_admin.get(address(site)).json()["entry"] == ENTRY
    assert codes(api_as_carol.get(address(site))) == (404, "not_found")
    assert codes(api_as_nobody.get(address(site))) == (401, "not_authenticated")


@pytest.mark.parametrize("server", ["fd00::7", "[fd00::7]"])
def test_an_address_of_ipv6_stands_in_brackets(
    server: str, host: APIClient, site: Site
) -> None:
    Site.objects.update(nfs_server=server, mount_options="")
    assert host.get(address(site)).json()["entry"] == "-fstype=nfs [fd00::7]:/w-hers"


def test_what_is_in_the_trash_is_mounted_by_nobody(
    host: APIClient, site: Site, ready: Workspace
) -> None:
    set_workspace_state(ready, Workspace.State.RETIRING)
    assert host.get(address(site)).status_code == 200
    set_workspace_state(ready, Workspace.State.TRASHED)
    assert codes(host.get(address(site))) == (404, "not_found")


def test_a_claimed_workspace_is_where_its_path_says(
    host: APIClient, site: Site, ready: Workspace
) -> None:
    Workspace.objects.update(remote_name="pool-1a2b")
    ready.refresh_from_db()

    assert host.get(address(site, ready.path.name)).json()["workspace"] == "hers"
    assert host.get(address(site, "w-hers")).status_code == 404


def test_a_site_without_a_server_says_so(host: APIClient, site: Site) -> None:
    Site.objects.update(nfs_server="")
    assert codes(host.get(address(site))) == (409, "nfs_server_unknown")


@pytest.mark.parametrize("directory", HOSTILE)
def test_hostile_names_are_nobodys(directory: str, host: APIClient, site: Site) -> None:
    assert host.get(address(site, directory)).status_code in (404, 405)


@given(st.text(min_size=1, max_size=60))
@tried(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_other_name_is_nobodys(host: APIClient, site: Site, name: str) -> None:
    if name != "w-hers":
        assert host.get(address(site, name)).status_code == 404


# --- its token


def test_a_token_that_reads_mounts_does_nothing_else(
    host: APIClient, site: Site, ready: Workspace, admin: User
) -> None:
    for answer in (
        host.get("/api/v1/workspaces"),
        host.get(f"/api/v1/workspaces/{ready.pk}"),
        host.post("/api/v1/workspaces", {"template": ready.template.name}),
        host.get("/api/v1/templates"),
        host.get("/api/v1/tokens"),
        host.get("/api/v1/sites"),
    ):
        assert codes(answer) == (403, "token_scope")
    assert codes(host.get("/api/v1/nothing")) == (404, "not_found")
    User.objects.filter(pk=admin.pk).update(is_staff=False)
    assert codes(host.get(address(site))) == (404, "not_found")


def test_administrators_alone_make_such_a_token(alice: User, admin: User) -> None:
    client, sent = JsonClient(), {"name": "desks", "reads_mounts": True}
    client.force_login(alice)
    assert codes(client.post("/api/v1/tokens", sent)) == (403, "not_allowed")
    client.force_login(admin)
    bounded = client.post("/api/v1/tokens", {**sent, "max_workspaces": 1})
    assert list(bounded.json()["fields"]) == ["reads_mounts"]
    assert not ApiToken.objects.exists()

    made = client.post("/api/v1/tokens", sent)

    assert (made.status_code, made.json()["reads_mounts"]) == (201, True)


def test_the_page_offers_it_to_administrators(
    as_admin: Client, as_alice: Client
) -> None:
    sent = {"days": "30", "reads_mounts": "on"}
    assert "reads_mounts" not in as_alice.get("/tokens/").text
    as_alice.post("/tokens/", sent)
    assert not ApiToken.objects.get().is_scoped

    page = as_admin.post("/tokens/", sent).text

    assert "only reading mounts" in page
    assert ApiToken.objects.filter(reads_mounts=True).count() == 1


# --- the program map


@dataclass(frozen=True)
class Map:
    """The script with its configuration, laid out as on a host."""

    script: Path

    def set_up(self, **config: str) -> None:
        lines = (f"{name}='{value}'\n" for name, value in config.items())
        Path(f"{self.script}.conf").write_text("".join(lines))

    def look_up(self, *key: str) -> subprocess.CompletedProcess[str]:
        """Run it as autofs does."""
        return subprocess.run(
            [self.script, *key],
            capture_output=True,
            text=True,
            timeout=60,
            stdin=subprocess.DEVNULL,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
        )


@pytest.fixture
def between(live_server: LiveServer) -> Iterator[Between]:
    with standing_before(live_server.url) as between:
        yield between


@pytest.fixture
def program_map(tmp_path: Path, between: Between, site: Site, host_token: str) -> Map:
    program_map = Map(tmp_path / "auto.cloneyard")
    program_map.script.write_bytes(SCRIPT.read_bytes())
    program_map.script.chmod(0o755)
    token = tmp_path / "token"
    token.write_text(f"{host_token}\n")
    token.chmod(0o600)
    program_map.set_up(
        URL=f"{between.address}/",
        SITE=site.name,
        TOKEN_FILE=str(token),
        CACHE_DIR=str(tmp_path / "cache"),
        TIMEOUT_SECONDS="20",
    )
    return program_map


@pytest.mark.django_db(transaction=True)
def test_a_map_prints_the_entry_of_a_workspace_and_nothing_for_others(
    program_map: Map, ready: Workspace
) -> None:
    found = program_map.look_up("w-hers")
    assert (found.returncode, found.stdout, found.stderr) == (0, f"{ENTRY}\n", "")

    other = program_map.look_up("w-other")
    assert (other.returncode, other.stdout, other.stderr) == (1, "", "")

    set_workspace_state(ready, Workspace.State.RETIRING)
    set_workspace_state(ready, Workspace.State.TRASHED)
    gone = program_map.look_up("w-hers")
    assert (gone.returncode, gone.stdout) == (1, "")


@pytest.mark.django_db(transaction=True)
def test_a_map_knows_what_it_was_told_while_the_api_is_away(
    program_map: Map, between: Between
) -> None:
    never = "w-never-heard-of"
    assert program_map.look_up("w-hers").stdout == f"{ENTRY}\n"

    between.plan = [(503, {}), (503, {}), (401, {})]
    kept = program_map.look_up("w-hers")
    assert (kept.returncode, kept.stdout) == (0, f"{ENTRY}\n")
    assert "HTTP status 503" in kept.stderr
    unknown = program_map.look_up(never)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert f"no answer about {never}" in unknown.stderr
    assert program_map.look_up("w-hers").stdout == f"{ENTRY}\n", "a token that ended"

    # What the API says is gone is forgotten.
    between.plan = [(404, {}), (503, {})]
    assert program_map.look_up("w-hers").stdout == ""
    assert program_map.look_up("w-hers").stdout == ""


@pytest.mark.django_db(transaction=True)
def test_a_map_waits_no_longer_than_it_may(program_map: Map, between: Between) -> None:
    assert program_map.look_up("w-hers").returncode == 0
    with Path(f"{program_map.script}.conf").open("a") as config:
        config.write("TIMEOUT_SECONDS=1\n")
    between.plan = [HOLD]

    kept = program_map.look_up("w-hers")

    between.released.set()
    assert (kept.returncode, kept.stdout) == (0, f"{ENTRY}\n")
    assert "HTTP status 000" in kept.stderr


@pytest.mark.django_db(transaction=True)
def test_a_map_answers_where_it_can_keep_nothing(
    program_map: Map, tmp_path: Path
) -> None:
    (tmp_path / "cache").write_text("in the way")

    found = program_map.look_up("w-hers")

    assert (found.returncode, found.stdout) == (0, f"{ENTRY}\n")


@pytest.mark.django_db(transaction=True)
def test_a_token_that_others_can_read_is_not_sent(
    program_map: Map, between: Between, tmp_path: Path
) -> None:
    (tmp_path / "token").chmod(0o640)

    refused = program_map.look_up("w-hers")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "its owner alone may read" in refused.stderr
    assert between.asked.empty()


@pytest.mark.parametrize("key", [*HOSTILE, None])
def test_a_map_asks_nobody_about_a_hostile_key(key: str | None) -> None:
    # Without a configuration it could not ask, and would say so.
    found = Map(SCRIPT).look_up(*([] if key is None else [key]))
    assert (found.returncode, found.stdout, found.stderr) == (1, "", "")


@given(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=60))
@tried(max_examples=60)
def test_a_map_takes_names_of_workspaces_alone(key: str) -> None:
    found = Map(SCRIPT).look_up(key)

    assert (found.returncode, found.stdout) == (1, "")
    could_be_one = re.fullmatch(r"w-[a-z][a-z0-9-]*", key) is not None
    assert ("there is no" in found.stderr) == could_be_one
