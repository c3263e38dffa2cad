"""Every refusal has one shape, and none of them leaks what happened inside."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.test import RequestFactory
from pytest_django import Settings
from rest_framework.test import APIClient

from provisioner.api.errors import CODES, OTHER_CODES
from provisioner.catalog.actions.templates import template_build
from provisioner.catalog.models import Snapshot
from provisioner.lib.refusals import ActionRefused
from provisioner.urls import handler500
from provisioner.workspaces.models import Workspace
from tests.support.factories import UserFactory


def refusals(
    base: type[ActionRefused] = ActionRefused,
) -> Iterator[type[ActionRefused]]:
    yield base
    for refusal in base.__subclasses__():
        yield from refusals(refusal)


@pytest.mark.parametrize("refusal", list(refusals()), ids=lambda r: r.__name__)
def test_every_refusal_of_the_domain_has_a_status(
    refusal: type[ActionRefused],
) -> None:
    assert refusal.http_status in (400, 401, 403, 409, 429)


def test_no_code_means_two_things() -> None:
    codes = [refusal.code for refusal in refusals()]

    assert len(codes) == len(set(codes))
    assert set(codes) | set(OTHER_CODES) == {code for code, _ in CODES}
    assert not set(codes) & set(OTHER_CODES)


def test_what_stands_against_a_request_that_is_well_formed_is_a_conflict(
    api_as_alice: APIClient,
    api_as_admin: APIClient,
    snapshot: Snapshot,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for most in (
        "catalog.actions.templates.MOST_PINNED",
        "notify.actions.webhooks.MOST_WEBHOOKS",
        "workspaces.actions.sharing.MOST_SHARES",
    ):
        monkeypatch.setattr(f"provisioner.{most}", 0)
    Workspace.objects.update(purpose=Workspace.Purpose.BUILD)
    left = UserFactory.create(is_active=False).username
    reader = UserFactory.create().username
    build = template_build(by=snapshot.template.owner, template=snapshot.template)
    template = f"/api/v1/templates/{snapshot.template_id}"
    hers = f"/api/v1/workspaces/{workspace.pk}"
    hook = {"url": "https://hooks.example.com/a", "events": ["workspace.ready"]}
    pool = {"template": snapshot.template.name, "purpose": "ci", "size": 1}
    pool["owner"] = left

    answers = [
        api_as_alice.put(f"{template}/pin"),
        api_as_alice.post("/api/v1/webhooks", hook),
        api_as_alice.post(f"{hers}/shares", {"person": reader}),
        api_as_alice.post(f"{hers}/check"),
        api_as_alice.post(f"{hers}/transfer"),
        api_as_admin.patch(template, {"owner": left}),
        api_as_admin.post("/api/v1/pools", pool),
        api_as_admin.post(f"{template}/roll-back", {"build": build.pk}),
    ]

    assert [(one.status_code, one.json()["code"]) for one in answers] == [
        *[(409, "too_many")] * 3,
        (409, "nothing_to_check"),
        (409, "nothing_to_transfer"),
        *[(409, "account_not_active")] * 2,
        (409, "build_did_not_fail"),
    ]


def post(client: APIClient, body: bytes, content_type: str) -> Any:
    return client.generic(
        "POST",
        "/api/v1/workspaces",
        body,  # type: ignore[arg-type]  # sent as it is
        content_type,
    )


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"nonsense",
        b"\xff\xfe",
        b'{"template": NaN}',
        b"9" * 5000,
        b"[" * 100_000,
        "{}".encode("utf-16"),
    ],
)
def test_a_body_that_is_not_json_is_refused(
    api_as_alice: APIClient, body: bytes
) -> None:
    response = post(api_as_alice, body, "application/json")

    assert response.status_code == 400
    assert response.json()["code"] == "parse_error"


@pytest.mark.parametrize("body", [b"[]", b"1", b'"text"', b"null", b"true"])
def test_a_body_that_is_no_object_is_refused(
    api_as_alice: APIClient, body: bytes
) -> None:
    response = post(api_as_alice, body, "application/json")

    assert response.status_code == 400
    assert response.json()["code"] == "invalid"


@pytest.mark.parametrize("charset", ["zlib", "base64", "utf-7", "no-such"])
def test_a_body_is_utf_8_whatever_its_header_says(
    api_as_alice: APIClient, charset: str
) -> None:
    response = post(api_as_alice, b"{}", f"application/json; charset={charset}")

    assert response.status_code == 400
    assert list(response.json()["fields"]) == ["template"]


@pytest.mark.parametrize("content_type", ["text/plain", "application/xml", "x", ""])
def test_another_content_type_is_refused(
    api_as_alice: APIClient, content_type: str
) -> None:
    response = post(api_as_alice, b"{}", content_type)

    assert response.status_code == 415
    assert response.json()["code"] == "unsupported_media_type"


def test_a_huge_body_is_refused(api_as_alice: APIClient, settings: Settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100

    response = post(api_as_alice, b" " * 101, "application/json")

    assert response.status_code == 413
    assert response.json()["code"] == "too_large"


def test_another_method_is_refused(api_as_alice: APIClient) -> None:
    response = api_as_alice.put("/api/v1/workspaces", {})

    assert response.status_code == 405
    assert response.json()["code"] == "method_not_allowed"
    assert response["Allow"] == "GET, POST, HEAD, OPTIONS"


@pytest.mark.parametrize("method", ["get", "post", "delete", "options", "patch"])
@pytest.mark.parametrize(
    "path", ["/api/", "/api/v1", "/api/v1/", "/api/v1/nothing", "/api/v1/workspaces/"]
)
def test_another_address_is_not_found(
    api_as_alice: APIClient, path: str, method: str
) -> None:
    response = getattr(api_as_alice, method)(path)

    assert response.status_code == 404
    assert response.json() == {
        "detail": "Nothing is here, or you may not see it.",
        "code": "not_found",
        "request_id": response["X-Request-ID"],
    }


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "x", ";;", ""])
def test_the_answer_is_json_whatever_was_asked_for(
    api_as_alice: APIClient, accept: str
) -> None:
    response = api_as_alice.get("/api/v1/workspaces?format=html", HTTP_ACCEPT=accept)

    assert response.status_code == 200
    assert response["Content-Type"] == "application/json"


def test_a_bug_of_ours_says_nothing_about_itself(rf: RequestFactory) -> None:
    response = handler500(rf.get("/api/v1/workspaces"))

    assert response.status_code == 500
    body = json.loads(response.content)
    assert set(body) == {"detail", "code", "request_id"}
    assert body["code"] == "internal_error"


def test_a_bug_of_ours_is_a_page_for_people(rf: RequestFactory) -> None:
    response = handler500(rf.get("/templates/"))

    assert response.status_code == 500
    assert response["Content-Type"].startswith("text/html")


def test_the_page_about_ci_names_codes_that_there_are() -> None:
    page = (settings.BASE_DIR / "docs" / "api.md").read_text()
    named = re.findall(r"\b4\d\d `(\w+)`", page)

    assert len(named) >= 3
    assert set(named) <= {code for code, _ in CODES}
