"""The door to Perforce's library: each byte goes in and comes out as it was."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import provisioner
from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.library import (
    ViewMap,
    as_bytes,
    as_text,
    is_utf8,
    reread,
    settable,
)

EVERY_BYTE = bytes(range(1, 256))
# What stands for itself in a view: no wildcard, blank, quote or line end.
IN_NAMES = bytes(set(EVERY_BYTE) - set(b' *.%"\t\r\n/@#'))
names = st.lists(st.sampled_from(IN_NAMES), min_size=1, max_size=40).map(bytes)
# With halves of characters that no byte becomes, and NUL.
any_text = st.text(st.characters(exclude_categories=()))


@given(st.binary().map(lambda data: data.replace(b"\0", b"")))
@example(EVERY_BYTE)
def test_bytes_come_back(data: bytes) -> None:
    assert as_bytes(as_text(data)) == data
    assert as_text(data) == os.fsdecode(data)


@given(any_text)
@example("\ud800")
@example("a\0b")
def test_text_is_said_or_refused(text: str) -> None:
    """What the library was not asked for cannot end the process."""
    try:
        data = as_bytes(text)
    except Refused as error:
        error.sentence.encode()
        return
    assert b"\0" not in data


@given(any_text)
@example("\udce9")
def test_what_is_set_is_text_that_the_library_takes(text: str) -> None:
    try:
        settable(text, what="The client").encode()
    except Refused as error:
        error.sentence.encode()
        assert not is_utf8(text) or "\0" in text


def test_a_secret_is_in_no_sentence() -> None:
    with pytest.raises(Refused) as refused:
        settable("\udcffsecret", what="The password", is_secret=True)
    assert "secret" not in refused.value.sentence


@given(names, names)
@example(IN_NAMES, IN_NAMES)
def test_a_view_maps_names_of_any_bytes(directory: bytes, name: bytes) -> None:
    inside, file = as_text(directory), as_text(name)
    view = ViewMap([f'"//depot/{inside}/..." "//client/{inside}/..."'])

    assert view.translate(f"//depot/{inside}/{file}") == f"//client/{inside}/{file}"
    assert view.translate(f"//depot/{inside}x/{file}") is None
    assert ViewMap.of_path(f"//depot/{inside}/{file}").left_joined(view) == [
        f"//depot/{inside}/{file}"
    ]


@given(any_text)
@example("//depot/\udce9/... //client/\udce9/...")
def test_a_map_of_any_text_is_made_or_refused(text: str) -> None:
    with contextlib.suppress(Refused):
        ViewMap([text]).includes(text)


def test_a_form_gets_back_what_the_library_lost() -> None:
    lost = {
        "Client": "c",
        "View": ["//d/\ufffd/... //c/..."],
        "Description": "\ufffd\n",
    }
    form = (
        "# \udcff\n\nClient:\tc\n\nDescription:\n\tn\udce9\n\n"
        "View:\n\t//d/\udce9/... //c/...\n"
    )

    assert reread(lost, form) == {
        "Client": "c",
        "View": ["//d/\udce9/... //c/..."],
        "Description": "n\udce9\n",
    }


def test_nothing_else_of_the_product_has_the_library() -> None:
    root = Path(provisioner.__file__).parent
    having = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if re.search(r"^(from P4|import P4)", path.read_text(), re.MULTILINE)
    }

    assert having == {"gateways/perforce/library.py"}
