"""How states, times and numbers look on pages."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import TextChoices
from django.forms.boundfield import BoundWidget
from django.forms.utils import flatatt
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.lib import sizes, spans, terminal, times
from provisioner.web.http import digest
from provisioner.workspaces import leases
from provisioner.workspaces.limits import Limit
from provisioner.workspaces.models import Finding
from provisioner.workspaces.overviews import StepLine

register = template.Library()
register.filter("digest", digest)

STATE_ICONS = {
    "provisioning": "running",
    "retiring": "running",
    "restoring": "running",
    "purging": "running",
    "building": "running",
    "running": "running",
    "ready": "done",
    "succeeded": "done",
    "done": "done",
    "failed": "failed",
    "refused": "warning",
    "retrying": "retry",
    "retired": "retired",
    "trashed": "trash",
    "cancelled": "skipped",
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
    "looking": "running",
    "unknown": "waiting",
}


@register.simple_tag
@lru_cache  # a list has hundreds of the same
def icon(name: str, label: str = "") -> SafeString:
    """Draw an icon of the sprite: for the eye only, unless it has a label."""
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
    """Draw one of many checkboxes: what Django draws, without a template for each."""
    data = option.data
    return format_html(
        '<input type="checkbox" name="{}" value="{}"{}>',
        data["name"],
        data["value"],
        flatatt(data["attrs"]),
    )


@register.simple_tag
def state(value: str, label: str) -> SafeString:
    """Show a state as a word with its icon; colour only repeats them."""
    return format_html(
        '<span class="state state-{}">{}<span>{}</span></span>',
        value,
        icon(STATE_ICONS[value]),
        label,
    )


@register.filter
def state_icon(value: TextChoices | str) -> str:
    return STATE_ICONS[str(value)]


@register.filter
def ago(moment: dt.datetime | None) -> SafeString | str:
    """Show a time as its distance from now, with the exact one a hover away."""
    if moment is None:
        return ""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        times.exact_text(timezone.localtime(moment), seconds=True),
        times.age_text(moment, now=timezone.now()),
    )


@register.filter
def exact(moment: dt.datetime | None) -> SafeString | str:
    """Show a time to the minute, in the reader's zone."""
    if moment is None:
        return ""
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        times.age_text(moment, now=timezone.now()),
        leases.exact(moment),
    )


@register.simple_tag
def lease_end(lease: leases.LeaseEnd) -> SafeString:
    """Say in a row when a lease ends: "in 3 days", "kept", or that it does not."""
    if lease.kept_because:
        return format_html('<span title="{}">kept</span>', lease.kept_because)
    if lease.ends_at is None:
        return SafeString('<span class="aside">&ndash;</span>')
    is_soon = SafeString(' class="lease-soon"' if lease.is_soon else "")
    return format_html("<span{}>{}</span>", is_soon, ago(lease.ends_at))


@register.filter
def span(seconds: int | None) -> str:
    """Show a length of time exactly: "30 d", "1 d 12 h"."""
    return "" if seconds is None else spans.span_text(seconds)


@register.filter
def item(mapping: Mapping[Any, Any], key: Any) -> Any:
    """Return what a mapping has under a key, None where it has nothing."""
    return mapping.get(key)


@register.filter
def duration(seconds: float | None) -> str:
    return "" if seconds is None else times.duration_text(seconds)


@register.filter
def roughly(seconds: float) -> str:
    return times.rough_text(seconds)


@register.filter
def size(size_bytes: int) -> SafeString:
    """Show a size with its largest unit, with the exact one a hover away."""
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
    return f"{intcomma(number)} {one if number == 1 else many}"


@register.simple_tag
def measure(line: StepLine) -> str:
    """Return how far a step is, in words: "812 of 3,612 files, 90 files a second"."""
    unit, text = line.step.progress.get("unit", ""), line.step.progress.get("text", "")
    parts = []
    if line.total:
        parts.append(f"{intcomma(line.done)} of {intcomma(line.total)} {unit}".strip())
    elif line.done:
        parts.append(f"{intcomma(line.done)} {unit}".strip())
    return ", ".join([*parts, text] if text else parts)


@register.filter
def printed(text: str) -> str:
    """Return what a terminal would show, without what could do harm here."""
    return terminal.shown_text(text)


@register.simple_tag
def open_findings() -> SafeString | str:
    """Return how many differences wait for an administrator, "" for none."""
    number = Finding.objects.filter(resolved_at=None).count()
    if not number:
        return ""
    return format_html(' <span class="tally">({})</span>', intcomma(number))


@register.simple_tag
def new_request_key() -> str:
    """Return a key for one form: sent twice, it is still one request."""
    return str(uuid.uuid4())
