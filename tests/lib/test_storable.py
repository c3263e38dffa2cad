"""Names of any bytes, as what stores and shows them has them."""

from __future__ import annotations

import os

from hypothesis import example, given
from hypothesis import strategies as st

from provisioner.lib.storable import (
    as_named,
    as_named_json,
    shown,
    storable,
    storable_json,
)

names = st.binary().map(lambda data: os.fsdecode(data.replace(b"\0", b"")))


@given(names)
@example("\\xe9 \\x5c \\x5cxe9 \\\\x80 \udce9\\")
@example(os.fsdecode(bytes(range(1, 256))))
def test_a_name_is_stored_and_had_back(name: str) -> None:
    stored = storable(name)

    stored.encode()
    assert as_named(stored) == name
    assert as_named_json(storable_json({name: [name, 1, None]})) == {
        name: [name, 1, None]
    }


@given(st.text(st.characters(exclude_categories=())))
@example("\ud800\0")
def test_any_text_is_shown(text: str) -> None:
    said = shown(text)

    said.encode()
    assert "\0" not in said
    assert shown(said) == said
    storable(text).encode()


def test_what_people_read_is_what_they_know() -> None:
    assert shown("Gr\udcfc\udcdfe/é.txt") == r"Gr\xfc\xdfe/é.txt"
    assert shown(r"C:\xe9") == r"C:\xe9"
