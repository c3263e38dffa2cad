"""Logs of steps on pages."""

from __future__ import annotations

from django import template
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString, mark_safe

from provisioner.engine.logs.excerpt import error_alone
from provisioner.lib.terminal import Span, painted_lines

register = template.Library()
register.filter(error_alone)


@register.simple_tag
def log_lines(text: str, number: int) -> SafeString:
    """Return the lines of a piece of a log, each with its number and its colors."""
    lines = list(painted_lines(text))
    if lines and not lines[-1]:
        lines.pop()  # what follows the last line end
    ended = text.count("\n")
    return mark_safe(  # noqa: S308 - made of what was escaped
        "".join(
            format_html(
                '<span class="log-line" id="L{0}"><a class="log-number" '
                'href="?line={0}#L{0}" tabindex="-1" aria-hidden="true" '
                'data-number="{0}"></a>{1}{2}</span>',
                number + at,
                _painted(spans),
                "\n" if at < ended else "",
            )
            for at, spans in enumerate(lines)
        )
    )


def _painted(spans: list[Span]) -> SafeString:
    return mark_safe(  # noqa: S308 - made of what was escaped
        "".join(
            format_html('<span class="{}">{}</span>', span.looks, span.text)
            if span.looks
            else escape(span.text)
            for span in spans
        )
    )
