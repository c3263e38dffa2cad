"""The documents that come with Cloneyard, read once per process."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from django.conf import settings
from django.urls import reverse

from provisioner.help.groups import AT_THE_ROOT, GROUPS
from provisioner.help.markdown import Rendered, Section, rendered

ROOT: Path = settings.FILES_DIR
EXCERPT_CHARACTERS = 220
MOST_FOUND = 50


@dataclass(frozen=True, kw_only=True)
class Document:
    """`name` is part of its URL, `path` is relative to the project's root."""

    name: str
    path: str
    page: Rendered

    @property
    def url(self) -> str:
        return reverse("help-page", args=[self.name])


@dataclass(frozen=True, kw_only=True)
class Group:
    title: str
    documents: tuple[Document, ...]


@dataclass(frozen=True, kw_only=True)
class Found:
    """A section that has all words, with some text around the first."""

    document: Document
    section: Section
    excerpt: str

    @property
    def url(self) -> str:
        return f"{self.document.url}#{self.section.anchor}"


@cache
def _names() -> dict[str, str]:
    """Return the name of each document by its path.

    "docs/adr/0001-x.md" is "adr-0001-x", and a README has its folder's name.
    """
    paths = sorted(path.relative_to(ROOT) for path in (ROOT / "docs").rglob("*.md"))
    names = dict(AT_THE_ROOT)
    for path in paths:
        parts = [*path.parts[1:-1], *([] if path.stem == "README" else [path.stem])]
        names[str(path)] = "-".join(parts)
    return names


@cache
def documents() -> dict[str, Document]:
    """Return all documents by their names."""
    return {name: _document(name, path) for path, name in _names().items()}


def _document(name: str, path: str) -> Document:
    def lead(address: str) -> str | None:
        """Keep links to documents and sites; drop links to files without a page."""
        if "://" in address or address.startswith("#"):
            return address
        there, hash_sign, anchor = address.partition("#")
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), there))
        known = _names().get(target)
        if known is None:
            return None
        return reverse("help-page", args=[known]) + hash_sign + anchor

    return Document(
        name=name, path=path, page=rendered((ROOT / path).read_text(), lead=lead)
    )


def contents() -> list[Group]:
    """Return the documents in groups; those in a folder are linked from its README."""
    known = documents()
    tops = [name for name in known if "/" not in _inside(known[name].path)]
    named = {name for _, names in GROUPS for name in names}
    rest = tuple(name for name in tops if name not in named)
    groups = (
        Group(
            title=title,
            documents=tuple(known[name] for name in names or rest if name in known),
        )
        for title, names in GROUPS
    )
    return [group for group in groups if group.documents]


def _inside(path: str) -> str:
    return path.removeprefix("docs/").removesuffix("/README.md")


def search(text: str) -> list[Found]:
    """Return the sections that have every word; those with one in the title first.

    What changed when comes last.
    """
    words = text.casefold().split()
    if not words:
        return []
    found = list(_sections_with(words))
    found.sort(
        key=lambda one: (
            one.document.name == "changelog",
            not _is_in_title(one.section, words),
        )
    )
    return found[:MOST_FOUND]


def _is_in_title(section: Section, words: list[str]) -> bool:
    return any(word in section.title.casefold() for word in words)


def _sections_with(words: list[str]) -> Iterator[Found]:
    for document in documents().values():
        for section in document.page.sections:
            whole = f"{section.title} {section.text}".casefold()
            if all(word in whole for word in words):
                yield Found(
                    document=document,
                    section=section,
                    excerpt=_excerpt(section.text, words[0]),
                )


def _excerpt(text: str, word: str) -> str:
    begin = max(0, text.casefold().find(word) - EXCERPT_CHARACTERS // 3)
    end = begin + EXCERPT_CHARACTERS
    return f"{'… ' * (begin > 0)}{text[begin:end].strip()}{' …' * (end < len(text))}"


def meaning_of(word: str) -> str:
    """Return a word's meaning in the glossary, by its anchor.

    Raises: KeyError.
    """
    return documents()["glossary"].page.words[word]
