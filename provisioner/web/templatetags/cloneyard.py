"""Template tags for states, times and numbers."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from functools import cache
from html import escape
from typing import Any

from django import template
from django.db.models import TextChoices
from django.forms.boundfield import BoundWidget
from django.forms.utils import flatatt
from django.template.context import Context
from django.template.defaulttags import CsrfTokenNode
from django.templatetags.static import static
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from provisioner import __version__
from provisioner.lib import request_ids, sizes, spans, terminal, times
from provisioner.lib.limits import Limit
from provisioner.web import navigation, themes
from provisioner.web.http import digest
from provisioner.web.lists.listing import Entry
from provisioner.web.notices import LEVEL_ICONS, Action, Level

register = template.Library()
register.filter("digest", digest)

STATE_ICONS = {
    "provisioning": "running",
    "creating": "running",
    "starting": "running",
    "transferring": "running",
    "retiring": "running",
    "restoring": "running",
    "purging": "running",
    "building": "running",
    "deleting": "running",
    "promoting": "running",
    "returning": "running",
    "giving-up": "running",
    "promoted": "done",
    "former": "retired",
    "given-up": "retired",
    "only-there": "warning",
    "deleted": "trash",
    "running": "running",
    "ready": "done",
    "available": "done",
    "succeeded": "done",
    "done": "done",
    "failed": "failed",
    "refused": "warning",
    "retrying": "retry",
    "retired": "retired",
    "gone": "retired",
    "trashed": "trash",
    "canceled": "skipped",
    "skipped": "skipped",
    "waiting": "waiting",
    "queued": "waiting",
    "new": "waiting",
    "built": "build",
    "tested": "done",
    "found": "done",
    "undecided": "warning",
    "stopped": "skipped",
    "good": "done",
    "bad": "failed",
    "skip": "skipped",
    "again": "retry",
    "well": "done",
    "passed": "done",
    "remarked": "info",
    "advised": "warning",
    "looking": "running",
    "unknown": "waiting",
}


@register.inclusion_tag("components/_sidebar.html", takes_context=True)
def sidebar(context: Mapping[str, Any]) -> dict[str, Any]:
    """Render the sections and, of the current one, its places and groups."""
    request = context["request"]
    match = request.resolver_match
    url_name = match.url_name or "" if match is not None else ""
    return {"sections": navigation.entries(request.user, url_name=url_name)}


@register.simple_tag(takes_context=True)
def theme(context: Mapping[str, Any]) -> str:
    """Return the theme chosen in this browser, "" where it follows the system."""
    return themes.chosen_theme(context.get("request"))


@register.simple_tag(takes_context=True)
def theme_choices(context: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Return the values and labels of all themes, and which is chosen."""
    chosen = theme(context) or "system"
    values = ("system", *themes.THEMES)
    return [(value, value.capitalize(), value == chosen) for value in values]


# Of pages alone: what the API does not ask for.
_OF_PAGES = {"as", "q", "sort", "page", "more", "view", "choose"}


@register.simple_tag(takes_context=True)
def api_address(context: Mapping[str, Any], name: str, **criteria: str) -> str:
    """Return the address in the API of what a page shows, by the same criteria."""
    asked = context["request"].GET.dict()
    kept = {key: value for key, value in asked.items() if key not in _OF_PAGES}
    named = {key: value for key, value in {**kept, **criteria}.items() if value}
    return f"{reverse(f'api:{name}')}?{urlencode(named)}"


@register.simple_tag
def version() -> str:
    """Return the version of Cloneyard."""
    return __version__


@register.simple_tag
@cache  # a page has a hundred of some ten
def icon(name: str, label: str = "") -> SafeString:
    """Render a sprite's icon, hidden from screen readers unless it has a label."""
    picture = f"{static('img/icons.svg')}#{name}"
    if label:
        return format_html(
            '<svg class="icon" role="img" aria-label="{}"><use href="{}"/></svg>',
            label,
            picture,
        )
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}"/></svg>', picture
    )


@register.simple_tag
def checkbox(option: BoundWidget) -> SafeString:
    """Render one of many checkboxes: Django's HTML without a template for each.

    benchmarks/own_parts.py measures what that saves.
    """
    data = option.data
    return format_html(
        '<input type="checkbox" name="{}" value="{}"{}>',
        data["name"],
        data["value"],
        flatatt(data["attrs"]),
    )


@register.simple_tag(takes_context=True)
def action(context: Context, action: Action) -> SafeString:
    """Render an action as a link, or as a form with one button.

    Lists and pages have dozens: without a template for each.
    """
    about = f'<span class="visually-hidden">{escape(action.about)}</span>'
    content = (
        f"{icon(action.icon) if action.icon else ''}{escape(action.label)}"
        f"{about if action.about else ''}"
    )
    look = "".join(
        f' {name}="{escape(value)}"'
        for name, value in (("class", action.classes), ("id", action.html_id))
        if value
    )
    if not action.is_post:
        return SafeString(f'<a{look} href="{escape(action.url)}">{content}</a>')
    sends = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">'
        for name, value in action.sends.items()
    )
    return SafeString(
        f'<form class="inline-form" method="post" action="{escape(action.url)}" '
        f"data-once>{CsrfTokenNode().render(context)}{sends}"
        f'<button{look} type="submit">{content}</button></form>'
    )


@register.simple_tag
def state(value: str, label: str) -> SafeString:
    """Show a state as a word and an icon; color is never the only sign."""
    return format_html(
        '<span class="state state-{}">{}<span>{}</span></span>',
        value,
        icon(STATE_ICONS[value]),
        label,
    )


@register.simple_tag
def said(message: str) -> SafeString:
    """Show a message as text, with lines quoted from a log as code."""
    words, mark, log = message.partition(terminal.QUOTES_LOG)
    if not mark:
        return format_html('<p class="prose-lines">{}</p>', message)
    return format_html(
        '<p class="prose-lines">{}</p><pre class="quoted">{}</pre>',
        words + mark.rstrip(),
        log,
    )


@register.filter
def state_icon(value: TextChoices | str) -> str:
    return STATE_ICONS[str(value)]


@register.filter
def level_icon(level: str) -> str:
    return LEVEL_ICONS[Level(level)]


@register.simple_tag
def state_of(row: Any) -> SafeString:
    """Show the state of a row."""
    return state(row.state, str(row.State(row.state).label))


@register.simple_tag
def choose(entry: Entry) -> SafeString:
    """Render the checkbox that selects a row for a bulk action."""
    return format_html(
        '<label class="choose"><input id="choose-{key}" type="checkbox" name="chosen" '
        'value="{key}" form="bulk" hx-preserve="true"{checked}>'
        '<span class="visually-hidden">Choose {name}</span></label>',
        key=entry.key,
        checked=SafeString(" checked" if entry.is_chosen else ""),
        name=entry.name,
    )


@register.simple_tag
def copyable(text: object, label: str) -> SafeString:
    """Show a text with a button that copies it."""
    return format_html(
        '<span class="copyable"><code>{text}</code><button class="copy" type="button" '
        'data-copy="{text}" hidden>{icon}</button></span>',
        text=text,
        icon=icon("copy", label=label),
    )


@register.filter
def ago(moment: dt.datetime | None) -> SafeString | str:
    """Show how long ago a time is, with the exact time as its title."""
    if moment is None:
        return ""
    exactly = times.exact_text(timezone.localtime(moment), seconds=True)
    return _time(moment, title=exactly, text=times.age_text(moment, now=timezone.now()))


def _time(moment: dt.datetime, *, title: str, text: str) -> SafeString:
    """Render a time; none of the texts needs escaping."""
    stamp = moment.isoformat()
    return SafeString(f'<time datetime="{stamp}" title="{title}">{text}</time>')


@register.filter
def exact(moment: dt.datetime | None) -> SafeString | str:
    """Show a time to the minute, in the reader's time zone."""
    if moment is None:
        return ""
    age = times.age_text(moment, now=timezone.now())
    return _time(moment, title=age, text=times.exact(moment))


@register.filter
def to_the_second(moment: dt.datetime) -> SafeString:
    """Show a time to the second, with its zone."""
    age = times.age_text(moment, now=timezone.now())
    exactly = times.exact_text(timezone.localtime(moment), seconds=True)
    return _time(moment, title=age, text=exactly)


@register.filter
def span(seconds: int | None) -> str:
    """Show an exact duration: "30 d", "1 d 12 h"."""
    return "" if seconds is None else spans.span_text(seconds)


@register.filter
def item(mapping: Mapping[Any, Any], key: Any) -> Any:
    """Return the value of a key, or None."""
    return mapping.get(key)


@register.filter
def duration(seconds: float | None) -> str:
    return "" if seconds is None else times.duration_text(seconds)


@register.filter
def duration_ms(milliseconds: int) -> str:
    return times.duration_text(milliseconds / 1000)


@register.filter
def roughly(seconds: float) -> str:
    return times.rough_text(seconds)


@register.filter
def size(size_bytes: int) -> SafeString:
    """Show a size in its largest unit, with the exact bytes as its title."""
    number = int(size_bytes)
    return SafeString(
        f'<data value="{number}" title="{number:,} bytes">'
        f"{sizes.size_text(number)}</data>"
    )


@register.filter
def used(limit: Limit) -> SafeString | str:
    return _amount(limit, limit.used, limit.used_text)


@register.filter
def allowed(limit: Limit) -> SafeString | str:
    return _amount(limit, limit.allowed, limit.allowed_text)


def _amount(limit: Limit, number: int | None, text: str) -> SafeString | str:
    return size(number) if limit.is_bytes and number is not None else text


@register.simple_tag
def count(number: int, one: str, many: str) -> str:
    """Return a number with its noun: "1 file", "3,612 files"."""
    return f"{number:,} {one if number == 1 else many}"


@register.filter
def printed(text: str) -> str:
    """Return the text without control characters, as a terminal would show it."""
    return terminal.shown_text(text)


@register.simple_tag
def new_request_key() -> str:
    """Return a key for a form, so that sending it twice makes one request."""
    return str(uuid.uuid4())


@register.simple_tag
def request_id() -> str:
    """Return the id by which the logs know this request."""
    return request_ids.current()
