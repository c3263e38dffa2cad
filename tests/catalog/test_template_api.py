"""GET and POST /api/v1/templates, and building one."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from provisioner.catalog.models import PinnedTemplate, Snapshot, Template
from provisioner.engine.models import Operation
from tests.support.factories import SiteFactory, SnapshotFactory, TemplateFactory

TEMPLATES = "/api/v1/templates"


def definition(**changes: Any) -> dict[str, Any]:
    return {
        "site": SiteFactory.create().name,
        "name": "main",
        "view": "//depot/main/... //template/...",
        **changes,
    }


def test_everybody_lists_templates(api_as_alice: APIClient, snapshot: Snapshot) -> None:
    TemplateFactory.create(name="unbuilt")

    body = api_as_alice.get(TEMPLATES).json()

    unbuilt, main = body["results"]
    assert unbuilt["name"] == "unbuilt"
    assert unbuilt["snapshot"] is None
    assert main["name"] == "main"
    assert main["state"] == "new"
    assert main["snapshot"] == {
        "id": snapshot.pk,
        "change": snapshot.change,
        "quality": "built",
    }


def test_templates_are_filtered_by_name_and_site(api_as_alice: APIClient) -> None:
    here, there = (
        TemplateFactory.create(name="main"),
        TemplateFactory.create(name="main"),
    )
    TemplateFactory.create(name="other", site=here.site)

    by_name = api_as_alice.get(TEMPLATES, {"name": "main"}).json()["results"]
    by_both = api_as_alice.get(TEMPLATES, {"name": "main", "site": here.site.name})

    assert [row["id"] for row in by_name] == [there.pk, here.pk]
    assert [row["id"] for row in by_both.json()["results"]] == [here.pk]


def test_a_template_is_shown(api_as_alice: APIClient, template: Template) -> None:
    template.build_environment = {"LICENSE": "secret"}
    template.bisection_environment = {"CC": "clang"}
    template.save()

    response = api_as_alice.get(f"{TEMPLATES}/{template.pk}")

    assert response.status_code == 200
    assert response.json()["site"] == template.site.name
    assert "secret" not in response.content.decode()
    assert response.json()["bisection_environment"] == {"CC": "clang"}


@pytest.mark.parametrize("pk", ["0", "999999", "9" * 30, "9" * 5000, "main", "%00"])
def test_a_template_that_is_not_there_is_not_found(
    api_as_alice: APIClient, pk: str
) -> None:
    response = api_as_alice.get(f"{TEMPLATES}/{pk}")

    assert response.status_code == 404
    assert response.json()["code"] == "not_found"


def test_nobody_sees_templates(api_as_nobody: APIClient, template: Template) -> None:
    assert api_as_nobody.get(TEMPLATES).status_code == 401
    assert api_as_nobody.get(f"{TEMPLATES}/{template.pk}").status_code == 401
    assert api_as_nobody.post(TEMPLATES).status_code == 401
    assert api_as_nobody.post(f"{TEMPLATES}/{template.pk}/build").status_code == 401


def test_an_administrator_defines_a_template(api_as_admin: APIClient) -> None:
    asked = definition(build_command="make", build_environment={"CC": "cc"})

    response = api_as_admin.post(TEMPLATES, asked)

    assert response.status_code == 201
    body = response.json()
    assert response["Location"].endswith(f"{TEMPLATES}/{body['id']}")
    assert body["state"] == "new"
    assert body["build_command"] == "make"
    template = Template.objects.get(pk=body["id"])
    assert template.build_environment == {"CC": "cc"}
    assert template.owner.username == "admin"


def test_a_developer_defines_no_template(api_as_alice: APIClient) -> None:
    response = api_as_alice.post(TEMPLATES, definition())

    assert response.status_code == 403
    assert response.json()["code"] == "not_allowed"
    assert not Template.objects.exists()


def test_a_taken_name_is_refused(api_as_admin: APIClient, template: Template) -> None:
    response = api_as_admin.post(TEMPLATES, definition(site=template.site.name))

    assert response.status_code == 409
    assert response.json()["code"] == "name_taken"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "Main"}, "invalid"),
        ({"name": ""}, "invalid"),
        ({"name": None}, "invalid"),
        ({"site": "nowhere"}, "invalid"),
        ({"site": "a\0"}, "invalid"),
        ({"view": ""}, "template_invalid"),
        ({"view": "//... //template/..."}, "template_invalid"),
        ({"view": "//depot/\0"}, "invalid"),
        ({"stream": "//streams/main"}, "template_invalid"),
        ({"line_end": "cr"}, "invalid"),
        ({"client_options": "explode"}, "template_invalid"),
        ({"build_timeout_seconds": 0}, "invalid"),
        ({"build_timeout_seconds": 2**40}, "invalid"),
        ({"volume_size_bytes": 2**70}, "invalid"),
        ({"snapshots_to_keep": "many"}, "invalid"),
        ({"build_environment": {"A B": ""}}, "invalid"),
        ({"bisection_environment": {"A B": ""}}, "invalid"),
        ({"build_environment": {"\0": ""}}, "invalid"),
        ({"build_environment": {"A": "\0"}}, "invalid"),
        ({"build_environment": {"A": {"deep": 1}}}, "invalid"),
        ({"build_environment": "CC=cc"}, "invalid"),
    ],
)
def test_a_definition_that_cannot_be_is_refused(
    api_as_admin: APIClient, changes: dict[str, Any], code: str
) -> None:
    response = api_as_admin.post(TEMPLATES, definition(**changes))

    assert response.status_code == 400
    assert response.json()["code"] == code
    assert not Template.objects.exists()


def test_an_administrator_builds_a_template(
    api_as_admin: APIClient, template: Template
) -> None:
    response = api_as_admin.post(f"{TEMPLATES}/{template.pk}/build", {"change": 7})

    assert response.status_code == 202
    body = response.json()
    assert response["Location"].endswith(f"/api/v1/operations/{body['id']}")
    assert (body["kind"], body["state"]) == ("template_build", "running")
    assert (body["template"], body["workspace"]) == (template.pk, None)
    assert body["steps"][0]["state"] == "queued"
    assert Operation.objects.get(pk=body["id"]).parameters == {"change": 7}


def test_a_build_needs_no_body(api_as_admin: APIClient, template: Template) -> None:
    response = api_as_admin.post(f"{TEMPLATES}/{template.pk}/build")

    assert response.status_code == 202


def test_a_template_is_built_once_at_a_time(
    api_as_admin: APIClient, template: Template
) -> None:
    api_as_admin.post(f"{TEMPLATES}/{template.pk}/build")

    response = api_as_admin.post(f"{TEMPLATES}/{template.pk}/build")

    assert response.status_code == 409
    assert response.json()["code"] == "template_busy"
    stopped = api_as_admin.post(f"{TEMPLATES}/{template.pk}/build/stop")
    assert (stopped.status_code, stopped.json()["state"]) == (200, "canceled")
    again = api_as_admin.post(f"{TEMPLATES}/{template.pk}/build/stop")
    assert (again.status_code, again.json()["code"]) == (409, "nothing_to_stop")


@pytest.mark.parametrize("change", [0, -1, 2**31, "newest", 1.5, [], True])
def test_a_change_that_cannot_be_is_refused(
    api_as_admin: APIClient, template: Template, change: Any
) -> None:
    response = api_as_admin.post(f"{TEMPLATES}/{template.pk}/build", {"change": change})

    assert response.status_code == 400
    assert list(response.json()["fields"]) == ["change"]


def test_a_developer_builds_no_template(
    api_as_alice: APIClient, template: Template
) -> None:
    response = api_as_alice.post(f"{TEMPLATES}/{template.pk}/build")

    assert response.status_code == 403
    assert response.json()["code"] == "not_allowed"


def test_a_template_that_is_not_there_is_not_built(api_as_admin: APIClient) -> None:
    assert api_as_admin.post(f"{TEMPLATES}/999999/build").status_code == 404


def test_a_template_is_pinned_for_oneself(
    api_as_alice: APIClient,
    api_as_admin: APIClient,
    api_as_nobody: APIClient,
    template: Template,
) -> None:
    where = f"{TEMPLATES}/{template.pk}/pin"
    assert api_as_nobody.put(where).status_code == 401
    for _ in range(2):  # already done
        assert api_as_alice.put(where).json()["pinned"] is True
    assert api_as_alice.get(TEMPLATES).json()["results"][0]["pinned"] is True
    assert api_as_admin.get(TEMPLATES).json()["results"][0]["pinned"] is False
    for _ in range(2):
        assert api_as_alice.delete(where).json()["pinned"] is False
    assert not PinnedTemplate.objects.exists()


def test_the_list_costs_the_same_for_one_as_for_many(api_as_alice: APIClient) -> None:
    SnapshotFactory.create()
    api_as_alice.get(TEMPLATES)  # the first use of a token is noted
    with CaptureQueriesContext(connection) as for_one:
        api_as_alice.get(TEMPLATES)
    for _ in range(5):
        SnapshotFactory.create()

    with CaptureQueriesContext(connection) as for_many:
        api_as_alice.get(TEMPLATES)

    assert len(for_many) == len(for_one)
