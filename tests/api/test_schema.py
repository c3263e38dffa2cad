"""The schema that is committed is the one that is served."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import call_command
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiJsonRenderer
from rest_framework.test import APIClient

from provisioner.accounts.models import User

COMMITTED = Path(settings.BASE_DIR) / "docs" / "openapi.yaml"


def committed() -> Any:
    return yaml.load(COMMITTED.read_text(), Loader=yaml.CSafeLoader)


def test_the_committed_schema_is_up_to_date(tmp_path: Path) -> None:
    generated = tmp_path / "openapi.yaml"

    call_command("spectacular", file=str(generated), validate=True, fail_on_warn=True)

    assert generated.read_text() == COMMITTED.read_text(), (
        "Run: python manage.py spectacular --file docs/openapi.yaml"
    )


def test_the_served_schema_is_the_committed_one(api_as_alice: APIClient) -> None:
    response = api_as_alice.get("/api/schema/")

    assert response.status_code == 200
    assert json.loads(response.content) == committed()


def test_the_schema_is_made_once(
    api_as_alice: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = api_as_alice.get("/api/schema/")

    monkeypatch.delattr(SchemaGenerator, "parse")
    monkeypatch.setattr(OpenApiJsonRenderer, "render", None)

    assert api_as_alice.get("/api/schema/").content == first.content


def test_nobody_needs_an_account_to_read_the_schema(api_as_nobody: APIClient) -> None:
    response = api_as_nobody.get("/api/schema/")

    assert response.status_code == 200
    assert response.json()["openapi"].startswith("3.")


@pytest.mark.parametrize("format_", ["html", "yaml", "no-such"])
def test_the_schema_has_one_format(api_as_alice: APIClient, format_: str) -> None:
    assert api_as_alice.get(f"/api/schema/?format={format_}").status_code == 200


def test_every_operation_says_what_it_refuses() -> None:
    paths = committed()["paths"]

    for methods in paths.values():
        for operation in methods.values():
            assert "401" in operation["responses"]
            assert operation["summary"]


def test_the_docs_page_is_for_those_who_signed_in(
    api_as_nobody: APIClient, alice: User
) -> None:
    assert api_as_nobody.get("/api/docs/").status_code == 302

    api_as_nobody.force_login(alice)
    response = api_as_nobody.get("/api/docs/")

    assert response.status_code == 200
    page = response.content.decode()
    assert "<script>" not in page
    assert "style=" not in page
    assert re.findall(r"""(?:src|href)=["'](?:\w+:|//)""", page) == []
