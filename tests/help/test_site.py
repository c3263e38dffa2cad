"""The documentation as a site: from the same pages and navigation as below /help/."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from provisioner.help.documents import contents, documents
from provisioner.help.groups import AT_THE_ROOT, GROUPS

ROOT: Path = settings.BASE_DIR


def build(into: Path, *, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "properdocs", "build", "--strict"),
            *("--config-file", ".ci/properdocs.yml", "-d", str(into)),
        ],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("site")
    built = build(into)
    assert built.returncode == 0, built.stderr
    return into


def test_the_site_has_every_page_of_help(site: Path) -> None:
    titles = {
        re.search("<title>(.*?)</title>", page.read_text())[1]  # type: ignore[index]
        for page in site.rglob("*.html")
    }
    for document in documents().values():
        title = document.page.title.replace("&", "&amp;")
        assert any(each.startswith(title) for each in titles), document.path


def test_its_navigation_is_that_of_help(site: Path) -> None:
    home = (site / "index.html").read_text()
    navigation = home.partition("navbar-collapse")[2].partition("</div>\n")[0] + home
    at = [navigation.index(f">{group.title}<") for group in contents()]
    assert at == sorted(at)
    first = [group.documents[0].name for group in contents()]
    assert [name for name in first if f'href="{name}.html"' not in navigation] == []


def test_it_loads_nothing_from_elsewhere(site: Path) -> None:
    loading = re.compile(
        r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(?:https?:)?//'
    )
    pages = list(site.rglob("*.html"))
    assert len(pages) > 40
    assert [page.name for page in pages if loading.search(page.read_text())] == []


def test_links_to_nothing_stop_the_build(tmp_path: Path) -> None:
    for path in ("docs", "provisioner/help", ".ci"):
        shutil.copytree(ROOT / path, tmp_path / path)
    for path in ("provisioner/__init__.py", *AT_THE_ROOT):
        shutil.copy(ROOT / path, tmp_path / path)
    with (tmp_path / "docs/work.md").open("a") as page:
        page.write("\n[one](nowhere.md) and [another](cli.md#nowhere)\n")

    built = build(tmp_path / "site", root=tmp_path)

    assert built.returncode != 0
    for link in ("nowhere.md", "cli.md#nowhere"):
        assert f"'{link}'" in built.stderr


def test_each_group_of_readers_has_a_guide_and_what_is_named_exists() -> None:
    named = [name for _, names in GROUPS for name in names]
    assert len(named) == len(set(named))
    assert set(named) <= set(documents())
    titles = " ".join(title for title, _ in GROUPS)
    for readers in ("Developers", "CI", "Administrators", "Contributors"):
        assert readers in titles
