"""Choices among hundreds are drawn as Django draws them."""

from __future__ import annotations

from typing import Any

import pytest
from django import forms
from django.test.html import parse_html
from django.utils.safestring import SafeString
from hypothesis import given
from hypothesis import strategies as st

from provisioner.web.selects import LeanSelect, lean_selects

# What no page can hold is no label either.
TEXTS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)
CHOICES = [
    (None, "Nothing"),
    (7, "A number"),
    ("a<b", "Less & more"),
    ("quote\"d'", SafeString("<b>Bold</b>")),
]


def drawn_by_both(
    choices: list[tuple[Any, Any]], value: Any, **attrs: str
) -> tuple[object, object]:
    lean, django = (
        parse_html(kind(choices=choices).render("field", value, attrs))
        for kind in (LeanSelect, forms.Select)
    )
    return lean, django


@pytest.mark.parametrize("value", [None, "", 7, "7", "a<b", "quote\"d'", "missing"])
def test_it_is_the_same_html(value: Any) -> None:
    lean, django = drawn_by_both(CHOICES, value, id="id_field", title='"&')
    assert lean == django


@given(st.lists(TEXTS, unique=True), st.data())
def test_any_text_is_a_choice(texts: list[str], data: st.DataObject) -> None:
    value = data.draw(st.sampled_from([None, *texts]))
    lean, django = drawn_by_both([(text, text) for text in texts], value)
    assert lean == django


def test_what_is_required_stays_so() -> None:
    class Asking(forms.Form):
        color = forms.ChoiceField(choices=[("", "Choose"), ("red", "Red")])

    django, lean = Asking(), Asking()
    lean_selects(lean)
    assert isinstance(lean.fields["color"].widget, LeanSelect)
    assert parse_html(str(lean["color"])) == parse_html(str(django["color"]))
