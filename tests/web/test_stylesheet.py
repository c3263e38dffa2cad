"""One stylesheet for all pages, built from a file per component."""

from __future__ import annotations

import re
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from provisioner.web.stylesheet import PART, with_parts

FOLDER = Path(settings.BASE_DIR / "static" / "css")
APART = {"cloneyard.css", "api-docs.css"}


def test_a_page_has_one_stylesheet(as_carol: Client) -> None:
    sheets = re.findall(r'rel="stylesheet" href="([^"]*)"', as_carol.get("/").text)
    assert sheets == ["/static/css/cloneyard.css"]


def test_every_component_is_in_it() -> None:
    named = [name for name, _ in PART.findall((FOLDER / "cloneyard.css").read_text())]
    assert sorted(named) == sorted(
        f.name for f in FOLDER.iterdir() if f.name not in APART
    )


def test_parts_stand_in_it_in_order() -> None:
    texts = {"a.css": "a {}\n", "b.css": "b {}\n"}
    sheet = '/* All. */\n@import url("b.css");\n@import url("a.css") print;\n'
    assert (
        with_parts(sheet, texts.__getitem__)
        == "/* All. */\nb {}\n@media print {\na {}\n}\n"
    )


def test_where_static_files_are_collected_it_is_one_file(
    settings: Settings, tmp_path: Path
) -> None:
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "provisioner.web.stylesheet.StylesheetStorage"},
    }
    for _ in range(2):
        call_command("collectstatic", interactive=False, verbosity=0, ignore=["admin"])

        [hashed] = (tmp_path / "css").glob("cloneyard.*.css")
        text = hashed.read_text()
        assert "@import" not in text
        assert ".sidebar {" in text
        assert "@media print {\n.site-header" in text
