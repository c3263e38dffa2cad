"""The documentation, as pages: complete, linked, searched, and explained in passing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template import Context, Template
from django.test import Client
from django.urls import reverse

from provisioner.help.documents import documents, meaning_of, search
from provisioner.help.markdown import rendered

ROOT: Path = settings.BASE_DIR
TERM = re.compile(r'{% term "([^"]+)"')


def test_every_document_has_a_page(as_carol: Client) -> None:
    paths = [str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")]
    shown = {document.path for document in documents().values()}
    assert shown == {*paths, "CHANGELOG.md", "CONTRIBUTING.md"}
    for document in documents().values():
        answer = as_carol.get(document.url)
        assert answer.status_code == 200
        assert f"<title>{document.page.title} ·" in answer.text


def test_the_first_page_leads_to_them_and_to_the_version(as_carol: Client) -> None:
    page = as_carol.get("/help/").text
    for name in ("glossary", "cli", "configuration", "architecture", "changelog"):
        assert f'href="/help/{name}/"' in page
    footer = as_carol.get("/").text.partition("<footer")[2]
    assert 'href="/help/"' in footer
    assert "Cloneyard 0.1.0" in footer


def test_links_between_documents_lead_to_pages_and_to_headings() -> None:
    anchors = {
        document.url: {section.anchor for section in document.page.sections}
        for document in documents().values()
    }
    for document in documents().values():
        for link in re.findall(r'href="([^"]*)"', document.page.html):
            if link.startswith("https://"):
                continue
            page, _, anchor = link.partition("#")
            assert (page or document.url) in anchors, (document.path, link)
            assert not anchor or anchor in anchors[page or document.url], link


def test_what_no_page_shows_is_no_link() -> None:
    page = rendered("# A\n\n[the file](x.yaml) and [b](b.md#c)", lead=_only_b)
    assert "the file and" in page.html
    assert '<a href="/b/">b</a>' in page.html


def test_a_table_without_headings_has_no_empty_ones() -> None:
    page = rendered("# A\n\n| | |\n| --- | --- |\n| x | y |\n", lead=_only_b)
    assert "<th" not in page.html
    assert "<td>x</td>" in page.html


def _only_b(address: str) -> str | None:
    return "/b/" if address.startswith("b.md") else None


def test_words_are_searched_for_in_all_documents(as_carol: Client) -> None:
    page = as_carol.get("/help/", {"q": "quota team"}).text
    assert "sections have “quota team”" in page
    assert re.search(r'href="/help/[a-z-]+/#[a-z-]+"', page)
    assert "0 sections have" in as_carol.get("/help/", {"q": "xyzzy"}).text


def test_titles_with_the_words_come_first() -> None:
    assert "Chaos" in [one.section.title for one in search("chaos")][:3]
    assert search("lease")[0].document.name != "changelog"


@pytest.mark.parametrize("text", ["\0", "<b>", "%", "(", " ", "9" * 300])
def test_whatever_is_typed_is_answered(text: str, as_carol: Client) -> None:
    answer = as_carol.get("/help/", {"q": text})
    assert answer.status_code == 200
    assert "<b>" not in answer.text


def test_there_is_nothing_else_below_help(as_carol: Client, as_nobody: Client) -> None:
    assert as_carol.get("/help/nowhere/").status_code == 404
    assert as_carol.get("/help/..%2f..%2fetc%2fpasswd/").status_code == 404
    assert as_nobody.get("/help/").status_code == 302


def test_a_word_says_what_it_means_and_where_to_read_on() -> None:
    page = Template('{% load help %}{% term "lease" %} {% term "lease" "Leases" %}')
    html = page.render(Context({}))

    assert f'href="{reverse("help-page", args=["glossary"])}#lease"' in html
    assert 'aria-describedby="term-1">lease</a>' in html
    assert 'id="term-2">How long a workspace lives.' in html
    assert ">Leases</a>" in html
    assert 'id="lease"' in documents()["glossary"].page.html


def test_every_word_that_pages_explain_is_in_the_glossary() -> None:
    used = {
        word
        for path in (ROOT / "templates").rglob("*.html")
        for word in TERM.findall(path.read_text())
    }
    assert len(used) > 5
    for word in used:
        assert meaning_of(word.replace(" ", "-").lower())


def test_the_image_has_the_documents() -> None:
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    assert "COPY docs docs" in dockerfile
    assert "COPY CHANGELOG.md CONTRIBUTING.md ./" in dockerfile
