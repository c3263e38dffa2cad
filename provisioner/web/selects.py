"""Selects with hundreds of options: Django's HTML without a template per option.

benchmarks/own_parts.py measures what they save.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.forms.utils import flatatt
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString


class LeanSelect(forms.Select):
    """A select of one option, without groups."""

    def render(
        self, name: str, value: Any, attrs: Any = None, renderer: Any = None
    ) -> SafeString:
        chosen = self.format_value(value)
        options = []
        for key, label in self.choices:
            text = "" if key is None else str(key)
            selected = " selected" if text in chosen else ""
            options.append(
                f'<option value="{escape(text)}"{selected}>'
                f"{conditional_escape(str(label))}</option>"
            )
        return format_html(
            '<select name="{}"{}>{}</select>',
            name,
            flatatt(self.build_attrs(self.attrs, attrs)),
            SafeString("\n".join(options)),
        )


def lean_selects(form: forms.BaseForm) -> None:
    """Use LeanSelect for every plain select of a form."""
    for field in form.fields.values():
        if type(field.widget) is forms.Select:
            lean = LeanSelect(attrs=field.widget.attrs)
            lean.is_required = field.widget.is_required
            lean.choices = field.widget.choices
            field.widget = lean
