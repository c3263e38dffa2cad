"""File types in words and on the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provisioner.lab.perforce import filetypes
from tests.lab.perforce.properties import patient

_bases = st.sampled_from(["text", "binary", "symlink", "unicode", "utf8", "utf16"])
_modifiers = st.text("xwklCDFSm", max_size=4)


@patient
@given(base=_bases, modifiers=_modifiers)
def test_a_type_has_one_long_form(base: str, modifiers: str) -> None:
    word = f"{base}+{modifiers}" if modifiers else base
    normal = filetypes.normalize(word)
    assert normal is not None
    assert filetypes.normalize(normal) == normal
    assert filetypes.base_of(normal) == base
    assert set(filetypes.modifiers_of(normal)) == set(modifiers)


@pytest.mark.parametrize(
    ("word", "normal"),
    [
        ("xtext", "text+x"),
        ("ktext", "text+k"),
        ("xbinary", "binary+x"),
        ("ubinary", "binary+F"),
        ("nonsense", None),
        ("text+", None),
        ("text+z", None),
    ],
)
def test_old_words_are_read_and_others_refused(word: str, normal: str | None) -> None:
    assert filetypes.normalize(word) == normal


@pytest.mark.parametrize(
    ("kind", "line_end", "code"),
    [
        ("text", "local", "00"),
        ("text+x", "win", "23"),
        ("binary", "win", "10"),
        ("binary+x", "local", "30"),
        ("symlink", "win", "40"),
        ("utf8", "unix", "K1"),
    ],
)
def test_the_wire_code_has_base_and_line_end(
    kind: str, line_end: str, code: str
) -> None:
    assert filetypes.wire_code(kind, line_end=line_end) == code


def test_a_plus_adds_to_the_old_type_and_a_base_replaces_it() -> None:
    assert filetypes.changed("text", "+x") == "text+x"
    assert filetypes.changed("text+x", "binary") == "binary"
    assert filetypes.changed("text", "+q") is None
