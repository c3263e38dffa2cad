"""The pages of sites and of Perforce servers: connecting, testing, what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.sites.actions.sites import site_test
from provisioner.sites.connections import rows
from provisioner.sites.connections.checklist import Check
from provisioner.sites.forms import PerforceServerForm, SiteForm
from provisioner.sites.models import ConnectionTest, PerforceServer, Site
from provisioner.workspaces.models import Workspace
from tests.support.browsers import is_polling
from tests.support.definitions import SERVER, SITE
from tests.support.factories import PerforceServerFactory, SiteFactory
from tests.support.queued_steps import worker_that_serves_everything

pytestmark = pytest.mark.django_db


WELL = Check(name="svm", outcome="passed", sentence="svm_dev runs and serves NFS.")
WRONG = Check(
    name="mount_root",
    outcome="failed",
    sentence="/clones cannot be read.",
    advice="Mount it.",
)


@pytest.fixture
def server(admin: User) -> PerforceServer:
    return PerforceServerFactory.create(name="main-1")


@pytest.fixture
def tested(admin: User, server: PerforceServer) -> Site:
    """A site of which every place has found something, one of them a failure."""
    site: Site = SiteFactory.create(name="munich-1", perforce_server=server)
    site_test(by=admin, site=site)
    for place, found in {"web": WELL, "worker": WELL, "host": WRONG}.items():
        rows.keep(site, place, [found])
    return site


def test_a_server_is_connected_and_tested_by_one_form(as_admin: Client) -> None:
    page = as_admin.get("/perforce/new/").text
    assert "P4PASSWD_" in page
    assert all(f'name="{name}"' in page for name in PerforceServerForm().fields)

    answer = as_admin.post("/perforce/new/", SERVER, follow=True)

    server = PerforceServer.objects.get()
    assert answer.redirect_chain == [("/setup/", 302)], "nobody has a workspace yet"
    answer = as_admin.get(f"/perforce/{server.pk}/")
    assert "nothing listens on port 9" in answer.text
    assert "P4PASSWD_MAIN_1" in answer.text
    assert "No running worker serves the queue perforce" in answer.text


def test_a_site_is_connected_and_tested_by_one_form(
    as_admin: Client, server: PerforceServer
) -> None:
    form = as_admin.get("/sites/new/").text
    assert f'<option value="{server.pk}" selected>' in form
    assert all(f'name="{name}"' in form for name in SiteForm().fields)

    fields = {**SITE, "perforce_server": server.pk}
    answer = as_admin.post("/sites/new/", fields, follow=True)

    site = Site.objects.get()
    assert site.export_clients == ["10.0.0.0/24", "10.0.1.7"]
    assert answer.redirect_chain == [("/setup/", 302)], "nobody has a workspace yet"
    answer = as_admin.get(f"/sites/{site.pk}/")
    assert "Neither ONTAP_PASSWORD_MUNICH_1 nor ONTAP_PASSWORD is set" in answer.text
    assert "nothing listens on port 9" in answer.text
    assert "manage.py worker --queues host.munich-1" in answer.text


def test_saving_only_tests_nothing_and_forgets_what_was_found(
    as_admin: Client, tested: Site, ready: Workspace
) -> None:
    fields = {**SITE, "perforce_server": tested.perforce_server_id, "do": "save"}
    answer = as_admin.post(f"/sites/{tested.pk}/edit/", {**fields, "title": "Munich"})

    assert answer["Location"] == f"/sites/{tested.pk}/"
    tested.refresh_from_db()
    assert (tested.title, tested.name) == ("Munich", "munich-1")
    assert not ConnectionTest.objects.exists()
    page = as_admin.get(f"/sites/{tested.pk}/").text
    assert "Not tested since the last change" in page


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("mount_options", "vers=3,nocto", "two hosts may use the same workspace"),
        ("mount_root", "/", "absolute path of a directory below /"),
        ("rescue_root", "/clones/rescue", "outside the mount root"),
        ("template_uid", "0", "greater than or equal to 1"),
        ("name", "Not a name", "lower-case letters"),
        ("export_clients", "", "This field is required"),
        ("networks", "10.2.0.1/16", "without bits of a host"),
        ("name", "nearest", "the site that is nearest"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    field: str, value: str, sentence: str, as_admin: Client, server: PerforceServer
) -> None:
    fields = {**SITE, "perforce_server": server.pk, field: value}
    answer = as_admin.post("/sites/new/", fields)

    assert answer.status_code == 422
    at_field = answer.text.partition(f'id="id_{field}_error"')[2][:400]
    assert sentence.lower() in at_field.lower()
    assert not Site.objects.exists()


def test_workers_that_mount_each_volume_need_to_know_from_where(
    as_admin: Client, server: PerforceServer
) -> None:
    fields = {**SITE, "perforce_server": server.pk, "mounting": "each"}
    answer = as_admin.post("/sites/new/", fields)
    assert answer.status_code == 422
    assert 'id="id_nfs_server_error"' in answer.text
    assert not Site.objects.exists()

    as_admin.post("/sites/new/", {**fields, "nfs_server": "nfs.example"})

    page = as_admin.get(f"/sites/{Site.objects.get().pk}/").text
    assert "workers mount each volume" in page
    assert "nfs.example" in page


def test_a_p4port_that_is_no_address_is_said_at_its_field(as_admin: Client) -> None:
    answer = as_admin.post("/perforce/new/", {**SERVER, "p4port": "perforce"})
    assert answer.status_code == 422
    assert "Write it as perforce:1666" in answer.text


def test_a_page_says_from_where_what_was_found_and_what_to_do(
    as_admin: Client, tested: Site
) -> None:
    page = as_admin.get(f"/sites/{tested.pk}/").text
    assert "Something is wrong" in page
    assert "A host of the site" in page
    assert "Mount it." in page
    assert not is_polling(page)
    listed = as_admin.get("/sites/").text
    assert "Mount root: /clones cannot be read." in listed


def test_a_site_says_who_may_read(as_admin: Client, tested: Site) -> None:
    page = as_admin.get(f"/sites/{tested.pk}/").text
    assert "whoever Perforce lets read all of its template" in page
    assert "are shown to every account" in page
    PerforceServer.objects.update(checks_read_access=False)
    page = as_admin.get(f"/sites/{tested.pk}/").text
    assert "is not asked who may read" in page


def test_it_polls_while_a_worker_is_about_to_look(
    as_admin: Client, admin: User, tested: Site
) -> None:
    worker_that_serves_everything()

    rows.ask(tested, by=admin, asked_at=timezone.now())

    page = as_admin.get(f"/sites/{tested.pk}/").text
    assert is_polling(page)
    assert "A worker is about to look" in page


def test_htmx_gets_what_was_found_alone(as_admin: Client, tested: Site) -> None:
    answer = as_admin.post(f"/sites/{tested.pk}/test/", headers={"HX-Request": "true"})
    assert answer.text.lstrip().startswith('<section id="connection"')
    assert 'hx-swap-oob="innerHTML:#announcement"' in answer.text
    assert as_admin.post(f"/sites/{tested.pk}/test/").status_code == 302
    tried = as_admin.post(f"/sites/{tested.pk}/try/", headers={"HX-Request": "true"})
    assert "A trial volume" in tried.text
    assert "the queue host.munich-1" in tried.text


def test_many_sites_take_no_more_queries(
    as_admin: Client, tested: Site, django_assert_max_num_queries: Any
) -> None:
    for _ in range(4):
        SiteFactory.create(perforce_server=tested.perforce_server)
    with django_assert_max_num_queries(11):
        as_admin.get("/sites/")


def test_a_secret_is_shown_nowhere(
    as_admin: Client, tested: Site, settings: Any
) -> None:
    settings.SITE_SECRET = lambda name, *, key: "open-sesame"
    settings.SITE_SECRET_SOURCE = lambda name, *, key: f"{name}_MUNICH_1_FILE"
    as_admin.post(f"/sites/{tested.pk}/test/")
    page = as_admin.get(f"/sites/{tested.pk}/").text
    assert "ONTAP_PASSWORD_MUNICH_1_FILE</code> is set" in page
    assert "open-sesame" not in page
