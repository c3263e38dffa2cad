"""The sidebar: which sections people have, and where each page belongs."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from provisioner.accounts.models import Team, User
from provisioner.catalog.models import Template
from provisioner.web.navigation import Section, place_of, places_for
from provisioner.workspaces.models import Workspace
from tests.support.findings import finding_about
from tests.support.rights_world import patterns, resolver_at

# Before anybody has signed in there is no sidebar, nor for programs.
FOR_NOBODY = {
    *("login", "theme", "healthz", "readyz", "metrics", "command-line"),
    *("password-forgotten", "password-new"),
    *("single-sign-on", "single-sign-on-callback"),
}


def sidebar(page: str) -> list[tuple[str, str]]:
    """Return what the sidebar of a page links to, and how each link is marked."""
    html = page[page.index('<nav class="sidebar"') : page.index("</nav>")]
    found = re.findall(r"<a [^>]*?(?:aria-current=\"(\w+)\")?>(.*?)</a>", html)
    return [(re.sub(r"<[^>]*>", "", text).strip(), mark) for mark, text in found]


def links(page: str) -> list[str]:
    return [text for text, _ in sidebar(page)]


def marked(page: str) -> list[tuple[str, str]]:
    return [(text, mark) for text, mark in sidebar(page) if mark]


def test_every_page_belongs_to_a_place(admin: User) -> None:
    names = {pattern.name or "" for pattern in patterns(resolver_at(""))}
    places = places_for(admin)

    lost = [name for name in names - FOR_NOBODY if place_of(name, places) is None]
    assert lost == []


def test_every_place_is_an_address_that_is_there(admin: User) -> None:
    named = {pattern.name for pattern in patterns(resolver_at(""))}
    assert {place.url_name for place in places_for(admin)} <= named


def test_an_administrator_has_every_section(as_admin: Client) -> None:
    sections = [section.title for section in Section if section.icon]
    assert links(as_admin.get("/overview/").text) == sections


def test_a_long_section_folds_its_groups(as_admin: Client) -> None:
    servers = links(as_admin.get("/perforce/").text)
    probes = links(as_admin.get("/perforce/probes/").text)

    assert "Measurements" in servers
    assert "Probes" not in servers
    first = probes.index("Measurements") + 1
    assert probes[first : first + 2] == ["Probes", "Did it help?"]
    assert "Programs" not in probes


def test_a_developer_has_a_short_one(as_carol: Client) -> None:
    assert links(as_carol.get("/").text) == [
        *("Workspaces", "My workspaces", "Trash", "History"),
        *("Templates", "Activity", "My account", "Help"),
    ]


def test_people_of_a_team_have_its_workspaces(alice: User, as_alice: Client) -> None:
    alice.team = Team.objects.create(name="Rendering")
    alice.save()
    assert "Team workspaces" in links(as_alice.get("/").text)


def test_what_several_places_depend_on_is_asked_once(
    alice: User, as_alice: Client
) -> None:
    alice.team = Team.objects.create(name="Rendering")
    alice.save()
    with CaptureQueriesContext(connection) as queries:
        as_alice.get("/help/")
    of_policies = [q for q in queries if "sandboxes_sandboxpolicy" in q["sql"]]
    assert len(of_policies) == 1


@pytest.mark.parametrize(
    ("address", "marks"),
    [
        ("/sites/", [("Storage", "true"), ("Sites", "page")]),
        ("/sites/new/", [("Storage", "true"), ("Sites", "true")]),
        ("/mirrors/new/", [("Storage", "true"), ("Mirrors", "true")]),
        ("/overview/", [("Overview", "page")]),
        (
            "/perforce/configuration/",
            [("Perforce", "true"), ("Configuration", "page")],
        ),
        ("/lease-policies/edit/", [("Policies", "true"), ("Leases", "true")]),
        ("/me/sessions/", [("My account", "true"), ("Sessions", "page")]),
        ("/tokens/", [("My account", "true"), ("API tokens", "page")]),
        ("/tokens/everybody/", [("People", "true"), ("API tokens", "page")]),
    ],
)
def test_a_page_marks_where_it_is(
    address: str, marks: list[tuple[str, str]], as_admin: Client
) -> None:
    assert marked(as_admin.get(address).text) == marks


@pytest.mark.parametrize(
    ("address", "group", "place"),
    [
        ("/perforce/programs/", "Programs and clients", ("Programs", "page")),
        ("/perforce/programs/releases/", "Programs and clients", ("Programs", "true")),
        ("/perforce/orphans/", "Load and logs", ("Orphans", "page")),
        ("/perforce/processes/", "Load and logs", ("Processes", "page")),
        ("/perforce/clients/", "Programs and clients", ("Clients", "page")),
        ("/perforce/probes/", "Measurements", ("Probes", "page")),
        ("/perforce/logs/", "Load and logs", ("Server logs", "page")),
        ("/perforce/support/", "Advice", ("Support matrix", "page")),
        ("/perforce/moments/", "Measurements", ("Did it help?", "true")),
    ],
)
def test_a_page_of_a_group_marks_it_too(
    address: str, group: str, place: tuple[str, str], as_admin: Client
) -> None:
    marks = [("Perforce", "true"), (group, "true"), place]
    assert marked(as_admin.get(address).text) == marks


def test_details_mark_the_list_that_they_are_of(
    template: Template, workspace: Workspace, as_alice: Client, as_admin: Client
) -> None:
    of_template = as_alice.get(f"/templates/{template.pk}/").text
    of_workspace = f"/workspaces/{workspace.pk}/"

    assert marked(as_alice.get("/mirrors/").text)[-1] == ("Templates", "true")
    assert marked(of_template)[-1] == ("Templates", "true")
    assert marked(as_alice.get(of_workspace).text)[-1] == ("My workspaces", "true")
    assert marked(as_admin.get(of_workspace).text)[-1] == ("All workspaces", "true")


def test_drift_says_how_much_is_open(workspace: Workspace, as_admin: Client) -> None:
    finding_about(workspace)
    assert "Activity 1 open" in links(as_admin.get("/overview/").text)
    assert "Drift 1 open" in links(as_admin.get("/operations/").text)


def test_who_has_not_signed_in_has_no_sidebar(as_nobody: Client) -> None:
    assert "sidebar" not in as_nobody.get("/login/").text


def test_no_page_leads_to_the_database_pages(as_admin: Client) -> None:
    for address in ("/", "/overview/", "/people/", "/sites/", "/palette/"):
        assert "/admin/" not in as_admin.get(address).text
