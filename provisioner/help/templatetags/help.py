"""Words with their meaning from the glossary."""

from __future__ import annotations

from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import slugify

from provisioner.help.documents import meaning_of

register = template.Library()
_COUNTED = "terms on this page"


@register.simple_tag(takes_context=True)
def term(context: template.Context, word: str, shown: str = "") -> SafeString:
    """Show a word with its meaning and a link to the glossary."""
    anchor = slugify(word)
    counts: Any = context.render_context
    number = counts[_COUNTED] = counts.get(_COUNTED, 0) + 1
    return format_html(
        '<span class="term"><a href="{}#{}" aria-describedby="term-{}">{}</a>'
        '<span class="term-meaning" role="tooltip" id="term-{}">{}</span></span>',
        *(reverse("help-page", args=["glossary"]), anchor, number, shown or word),
        *(number, meaning_of(anchor)),
    )
