"""Setup: the steps through an empty installation, and what others see meanwhile."""

from __future__ import annotations

from django.test import Client

from provisioner.accounts.models import User
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Snapshot
from provisioner.sites.actions.sites import perforce_server_test
from provisioner.sites.connections import rows
from provisioner.sites.connections.checklist import Check
from provisioner.sites.models import PerforceServer, Site
from provisioner.workspaces.models import Workspace
from tests.support.browsers import is_polling
from tests.support.factories import PerforceServerFactory, SiteFactory, TemplateFactory

WELL = Check(name="perforce_level", outcome="passed", sentence="cloneyard is super.")
WRONG = Check(
    name="perforce_sign_in",
    outcome="failed",
    sentence="The password of cloneyard is not valid.",
    advice="Put another one into P4PASSWD_MAIN.",
)


def find_everywhere(about: Site | PerforceServer, *, by: User, found: Check) -> None:
    """Record the same result for every place."""
    rows.ask(about, by=by, asked_at=by.date_joined)
    for place in ("web", "worker", "host"):
        rows.keep(about, place, [found])


def open_step(page: str) -> str:
    """Return the title of the step that is to be done now."""
    current = page.partition('aria-current="step"')[2]
    return current.partition("<h3>")[2].partition("<")[0].strip()


def test_an_empty_installation_begins_with_perforce(as_admin: Client) -> None:
    for address in ("/", "/setup/"):
        page = as_admin.get(address).text
        assert open_step(page) == "Connect Perforce"
        assert "/perforce/new/" in page
        assert "/sites/new/" not in page
        assert "0 of 4 done" in page
        assert not is_polling(page)


def test_others_see_who_can_do_what(
    as_alice: Client, as_newcomer: Client, admin: User, alice: User
) -> None:
    find_everywhere(PerforceServerFactory.create(), by=admin, found=WRONG)
    for address in ("/", "/setup/"):
        page = as_alice.get(address).text
        assert "Cloneyard is being set up" in page
        assert "Ask the administrator: admin." in page
        assert "/perforce/" not in page
        assert "not valid" not in page
    assert "has no uid and gid yet" in as_newcomer.get("/setup/").text
    User.objects.filter(pk=admin.pk).update(is_active=False)
    assert "createsuperuser" in as_alice.get("/").text


def test_what_a_test_found_is_said_at_its_step(as_admin: Client, admin: User) -> None:
    server = PerforceServerFactory.create(name="main")
    page = as_admin.get("/setup/").text
    assert "has not been tested since the last change" in page

    find_everywhere(server, by=admin, found=WRONG)
    page = as_admin.get("/setup/").text
    assert open_step(page) == "Connect Perforce"
    assert "The password of cloneyard is not valid." in page
    assert "Put another one into P4PASSWD_MAIN." in page

    again = as_admin.post(f"/perforce/{server.pk}/test/", {"from_setup": "yes"})
    assert again["Location"] == "/setup/"


def test_it_polls_while_a_worker_is_to_be_started(
    as_admin: Client, admin: User
) -> None:
    perforce_server_test(by=admin, server=PerforceServerFactory.create(name="main"))
    page = as_admin.get("/setup/").text
    assert "python manage.py worker --queues perforce" in page
    assert is_polling(page)


def test_each_step_opens_the_next(as_admin: Client, admin: User) -> None:
    site: Site = SiteFactory.create()
    find_everywhere(site.perforce_server, by=admin, found=WELL)
    assert open_step(as_admin.get("/setup/").text) == "Connect a site"
    find_everywhere(site, by=admin, found=WELL)
    page = as_admin.get("/setup/").text
    assert open_step(page) == "Build the first template"
    assert "/templates/new/" in page

    template = TemplateFactory.create(site=site, owner=admin)
    assert f"/templates/{template.pk}/build/" in as_admin.get("/setup/").text
    template_build(by=admin, template=template)
    page = as_admin.get("/setup/").text
    assert "is being built" in page
    assert is_polling(page)
    part = as_admin.get("/setup/", headers={"HX-Request": "true"}).text
    assert part.lstrip().startswith('<section class="setup"')


def test_a_snapshot_proves_what_comes_before_it(
    as_admin: Client, admin: User, snapshot: Snapshot
) -> None:
    page = as_admin.get("/setup/").text
    assert open_step(page) == "Get the first workspace"
    assert "3 of 4 done" in page
    assert "/templates/" in page

    admin.uid = admin.gid = None
    admin.save()
    assert f"/people/{admin.pk}/edit/" in as_admin.get("/setup/").text


def test_it_is_gone_once_anybody_had_a_workspace(
    as_admin: Client, ready: Workspace
) -> None:
    assert as_admin.get("/setup/")["Location"] == "/"
    part = as_admin.get("/setup/", headers={"HX-Request": "true"})
    assert part["HX-Redirect"] == "/"
    assert "Set up Cloneyard" not in as_admin.get("/").text
