"""Markdown of our own documents as HTML, with an anchor per heading and word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from django.utils.html import escape
from django.utils.text import slugify
from markdown_it import MarkdownIt
from markdown_it.token import Token

Lead = Callable[[str], str | None]
"""Return the address of a document's link on this server, None if no page shows it."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading with the text below it; the first one has the document's title."""

    title: str
    anchor: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Rendered:
    """`words` are the words explained in tables: their meanings by anchor."""

    title: str
    html: str
    sections: tuple[Section, ...]
    words: dict[str, str]


def rendered(source: str, *, lead: Lead) -> Rendered:
    """Return a document as HTML. Our documents may contain HTML."""
    markdown = MarkdownIt("commonmark").enable("table")
    # Lines of code do not break: whoever has no mouse scrolls them, too.
    markdown.add_render_rule("fence", _code)
    markdown.add_render_rule("code_block", _code)
    tokens = _without_empty_headings(markdown.parse(source))
    _lead_links(tokens, lead)
    sections = _sections(tokens)
    words = _words(tokens)
    return Rendered(
        title=sections[0].title,
        html=markdown.renderer.render(tokens, markdown.options, {}),
        sections=sections,
        words=words,
    )


def plain(tokens: Sequence[Token] | None) -> str:
    """Return the text of inline tokens."""
    kept = (t.content if t.type != "softbreak" else " " for t in tokens or ())
    return "".join(kept)


def _code(
    _renderer: Any, tokens: Sequence[Token], at: int, options: Any, env: Any
) -> str:
    return f'<pre tabindex="0"><code>{escape(tokens[at].content)}</code></pre>\n'


def _without_empty_headings(tokens: Sequence[Token]) -> list[Token]:
    """Leave out empty heading rows, which Markdown requires."""
    kept: list[Token] = []
    begin = 0
    for token in tokens:
        if token.type == "thead_open":
            begin = len(kept)
        kept.append(token)
        if token.type == "thead_close" and not any(t.content for t in kept[begin:]):
            del kept[begin:]
    return kept


def _lead_links(tokens: Sequence[Token], lead: Lead) -> None:
    for token in tokens:
        kept: list[Token] = []
        is_dropped = False
        for child in token.children or ():
            if child.type == "link_open":
                address = lead(str(child.attrGet("href") or ""))
                is_dropped = address is None
                child.attrSet("href", address or "")
            if not (is_dropped and child.type in ("link_open", "link_close")):
                kept.append(child)
        if token.children is not None:
            token.children = kept


def _sections(tokens: Sequence[Token]) -> tuple[Section, ...]:
    """Return the sections, and give each heading its anchor."""
    found: list[tuple[str, str, list[str]]] = []
    for opening, token in pairwise(tokens):
        if opening.type == "heading_open":
            title = plain(token.children)
            taken = sum(1 for known, _, _ in found if known == title)
            anchor = slugify(title) + (f"-{taken}" if taken else "")
            opening.attrSet("id", anchor)
            found.append((title, anchor, []))
        elif found and token.type == "inline":
            found[-1][2].append(plain(token.children))
        elif found and token.type in ("fence", "code_block"):
            found[-1][2].append(token.content)
    return tuple(
        Section(title=title, anchor=anchor, text=" ".join(" ".join(texts).split()))
        for title, anchor, texts in found
    )


def _words(tokens: Sequence[Token]) -> dict[str, str]:
    """Return the words explained in tables, and give each an anchor.

    Such a row begins with bold words; its next cell has their meaning.
    """
    found: dict[str, str] = {}
    cells = [token for cell, token in pairwise(tokens) if cell.type == "td_open"]
    for cell, meaning in pairwise(cells):
        # What is empty stands before bold type.
        children = [c for c in cell.children or () if c.type != "text" or c.content]
        if not children or children[0].type != "strong_open":
            continue
        for opening, text in pairwise(children):
            if opening.type == "strong_open":
                anchor = slugify(text.content)
                opening.attrSet("id", anchor)
                found[anchor] = plain(meaning.children)
    return found
