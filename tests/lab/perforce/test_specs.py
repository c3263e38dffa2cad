"""Forms, held against the client library's own parser where it can be asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from P4 import P4

from provisioner.lab.perforce.specs import (
    CHANGE,
    CLIENT,
    DEPOT,
    USER,
    Fields,
    FormError,
    SpecDefinition,
    format_form,
    parse_form,
)
from tests.lab.perforce.properties import patient

_letters = st.characters(
    exclude_categories=("Cc", "Cs", "Zl", "Zp", "Zs"), exclude_characters='"#'
)
_word = st.text(_letters, min_size=1, max_size=12)
_line = st.lists(_word, min_size=1, max_size=4).map(" ".join)
_text = st.lists(_line, min_size=1, max_size=4).map(lambda x: "\n".join(x) + "\n")


@st.composite
def _forms(draw: st.DrawFn) -> tuple[SpecDefinition, Fields]:
    definition = draw(st.sampled_from([CLIENT, USER, CHANGE, DEPOT]))
    fields: Fields = {}
    for field in definition.fields:
        if not field.is_required and draw(st.booleans()):
            continue
        if field.is_list:
            words = 2 if "words:2" in field.options else 1
            line = st.lists(_word, min_size=words, max_size=words).map(" ".join)
            fields[field.tag] = draw(st.lists(line, min_size=1, max_size=3))
        elif field.type == "text":
            fields[field.tag] = draw(_text)
        elif field.type == "line":
            fields[field.tag] = draw(_line)
        else:
            fields[field.tag] = draw(_word)
    return definition, fields


@patient
@given(form=_forms())
def test_a_form_survives_being_written_and_read(
    form: tuple[SpecDefinition, Fields],
) -> None:
    definition, fields = form
    text = format_form(fields, definition=definition)
    assert parse_form(text, definition=definition) == fields


@patient
@given(form=_forms())
def test_the_client_library_reads_the_same_form(
    form: tuple[SpecDefinition, Fields],
) -> None:
    definition, fields = form
    text = format_form(fields, definition=definition)
    parsed = getattr(P4(), f"parse_{definition.kind}")(text)
    assert dict(parsed) == fields


def test_comments_and_empty_texts_are_left_out() -> None:
    text = "# A form.\n\nClient:\tx\nHost:\n\nDescription:\n\ta\n\n\tb\n\nView:\n"
    assert parse_form(text, definition=CLIENT) == {
        "Client": "x",
        "Description": "a\n\nb\n",
        # A list that is there says that there is nothing in it.
        "View": [],
    }


@pytest.mark.parametrize("text", ["Clint:\tx\n", "no colon here\n"])
def test_what_is_no_form_is_refused(text: str) -> None:
    with pytest.raises(FormError, match="line 1"):
        parse_form(text, definition=CLIENT)
