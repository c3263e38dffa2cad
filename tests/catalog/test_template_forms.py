"""Defining, changing and building templates: for administrators."""

from __future__ import annotations

import pytest
from django.test import Client

from provisioner.catalog.models import Template
from provisioner.engine.models import Operation
from provisioner.sites.models import Site
from tests.support.definitions import definition
from tests.support.factories import SiteFactory


@pytest.fixture
def site(db: None) -> Site:
    return SiteFactory.create(name="munich")


def test_a_template_is_defined(as_admin: Client, site: Site) -> None:
    answer = as_admin.post(
        "/templates/new/",
        definition(
            name="main",
            site=site.pk,
            build_command="make\r\nmake check\r\n",
            build_environment="CC=clang\r\n\r\nFLAGS=-O2 -g=3",
            bisection_environment="CC=gcc",
        ),
    )
    template = Template.objects.get()
    assert answer["Location"] == f"/templates/{template.pk}/"
    assert template.owner.username == "admin"
    assert template.build_command == "make\nmake check"
    assert template.build_environment == {"CC": "clang", "FLAGS": "-O2 -g=3"}
    assert template.bisection_environment == {"CC": "gcc"}
    assert not template.commands_have_network, "the box was not ticked"
    assert template.volume_size_bytes == 3 * 2**29
    page = as_admin.get(answer["Location"]).text
    assert "is defined" in page
    assert "No network for builds, tests and bisections" in page


def test_the_only_site_is_chosen_already(as_admin: Client, site: Site) -> None:
    page = as_admin.get("/templates/new/").text
    assert f'<option value="{site.pk}" selected>' in page
    assert 'value="100 GiB"' in page


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"name": "Main"}, "Use 1 to 40 lower-case letters"),
        ({"volume_size_bytes": "plenty"}, "Write a size such as"),
        ({"build_environment": "not an assignment"}, "is not NAME=value"),
        ({"build_timeout_seconds": "0"}, "greater than or equal to 1"),
        ({"error_patterns": "(open"}, "is not a valid pattern"),
        ({"site": ""}, "This field is required"),
    ],
)
def test_what_is_mistyped_is_said_at_its_field(
    as_admin: Client, site: Site, wrong: dict[str, str], sentence: str
) -> None:
    sent = definition(**{"name": "main", "site": site.pk, **wrong})
    answer = as_admin.post("/templates/new/", sent)
    assert answer.status_code == 422
    assert sentence in answer.text
    assert not Template.objects.exists()


def test_a_view_of_the_whole_server_is_refused_with_the_reason(
    as_admin: Client, site: Site
) -> None:
    sent = definition(name="main", site=site.pk, view="//... //template/...")
    answer = as_admin.post("/templates/new/", sent)
    assert answer.status_code == 409
    assert 'role="alert"' in answer.text
    assert "//... //template/..." in answer.text
    assert not Template.objects.exists()


def test_view_and_stream_together_are_refused(as_admin: Client, site: Site) -> None:
    sent = definition(name="main", site=site.pk, stream="//streams/main")
    answer = as_admin.post("/templates/new/", sent)
    assert answer.status_code == 409
    assert "Give either view lines or a stream" in answer.text


def test_a_taken_name_is_refused(as_admin: Client, template: Template) -> None:
    sent = definition(name="main", site=template.site_id)
    answer = as_admin.post("/templates/new/", sent)
    assert answer.status_code == 409
    assert "The name “main” is taken" in answer.text


def test_a_definition_is_changed(as_admin: Client, template: Template) -> None:
    page = as_admin.get(f"/templates/{template.pk}/edit/").text
    assert "//depot/main/... //template/..." in page
    assert 'name="name"' not in page
    answer = as_admin.post(
        f"/templates/{template.pk}/edit/", definition(build_command="make")
    )
    assert answer["Location"] == f"/templates/{template.pk}/"
    template.refresh_from_db()
    assert template.build_command == "make"
    assert template.name == "main"


def test_a_template_being_built_is_not_changed(
    as_admin: Client, template: Template, build: Operation
) -> None:
    answer = as_admin.post(f"/templates/{template.pk}/edit/", definition())
    assert answer.status_code == 409
    assert "is being built" in answer.text


@pytest.mark.parametrize(
    ("sent", "parameters"), [({}, {}), ({"change": "42"}, {"change": 42})]
)
def test_a_build_is_asked_for(
    as_admin: Client,
    template: Template,
    sent: dict[str, str],
    parameters: dict[str, int],
) -> None:
    assert as_admin.get(f"/templates/{template.pk}/build/").status_code == 200
    answer = as_admin.post(f"/templates/{template.pk}/build/", sent)
    assert answer["Location"] == f"/templates/{template.pk}/"
    build = template.operations.get()
    assert build.parameters == parameters
    assert build.requested_by.username == "admin"


def test_a_change_is_a_number_from_1_on(as_admin: Client, template: Template) -> None:
    answer = as_admin.post(f"/templates/{template.pk}/build/", {"change": "0"})
    assert answer.status_code == 422
    assert not template.operations.exists()


def test_a_second_build_waits_for_the_first(
    as_admin: Client, template: Template, build: Operation
) -> None:
    answer = as_admin.post(f"/templates/{template.pk}/build/")
    assert answer.status_code == 409
    assert "is being built" in answer.text
    assert template.operations.count() == 1


@pytest.mark.parametrize("page", ["new", "{pk}/edit", "{pk}/build"])
def test_they_are_for_administrators(
    page: str, as_carol: Client, as_nobody: Client, template: Template
) -> None:
    address = f"/templates/{page.format(pk=template.pk)}/"
    for answer in (as_carol.get(address), as_carol.post(address, definition())):
        assert answer.status_code == 403
        assert "administrators" in answer.text
    assert as_nobody.post(address)["Location"].startswith("/login/")
    assert not template.operations.exists()


@pytest.mark.parametrize("page", ["new", "{pk}/edit", "{pk}/build"])
def test_other_methods_are_refused(
    page: str, as_admin: Client, template: Template
) -> None:
    address = f"/templates/{page.format(pk=template.pk)}/"
    assert as_admin.delete(address).status_code == 405


@pytest.mark.parametrize("page", ["edit", "build"])
def test_an_unknown_template_is_not_found(page: str, as_admin: Client) -> None:
    assert as_admin.get(f"/templates/999999/{page}/").status_code == 404
