"""Choices among hundreds: the same HTML as Django's, without a template for each."""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

_SELECTED = SafeString(" selected")


class LeanSelect(forms.Select):
    """A select of one; groups of options are not known here."""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        context = self.get_context(name, value, attrs)["widget"]
        options = (option for _, group, _ in context["optgroups"] for option in group)
        return format_html(
            '<select name="{}"{}>{}</select>',
            context["name"],
            flatatt(context["attrs"]),
            format_html_join(
                "\n",
                '<option value="{}"{}>{}</option>',
                (
                    (
                        option["value"],
                        _SELECTED if option["selected"] else "",
                        option["label"],
                    )
                    for option in options
                ),
            ),
        )


def lean_selects(form: forms.BaseForm) -> None:
    """Have every plain select of a form drawn so."""
    for field in form.fields.values():
        if type(field.widget) is forms.Select:
            lean = LeanSelect(attrs=field.widget.attrs)
            lean.is_required = field.widget.is_required
            lean.choices = field.widget.choices
            field.widget = lean
