"""Template tags of leases and signs of life."""

from __future__ import annotations

from django import template
from django.template.defaultfilters import capfirst
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from provisioner.leases import queries as lease_queries
from provisioner.leases.abandonment import Abandonment, Signal
from provisioner.web.templatetags.cloneyard import ago, exact, icon

register = template.Library()


def lease_words(lease: lease_queries.LeaseEnd) -> SafeString:
    """Return "lease ends in 3 days" or "kept", "" for a lease without an end."""
    if lease.kept_because:
        return SafeString("kept")
    if lease.ends_at is None:
        return SafeString()
    ends = "lease ended" if lease.is_over else "lease ends"
    is_soon = SafeString(' class="lease-soon"' if lease.is_soon else "")
    return format_html("<span{}>{} {}</span>", is_soon, ends, ago(lease.ends_at))


@register.simple_tag
def lease_end(lease: lease_queries.LeaseEnd) -> SafeString:
    """Show when a lease ends: "in 3 days", "kept", or never."""
    if lease.kept_because:
        return format_html('<span title="{}">kept</span>', lease.kept_because)
    if lease.ends_at is None:
        return SafeString('<span class="aside">&ndash;</span>')
    is_soon = SafeString(' class="lease-soon"' if lease.is_soon else "")
    return format_html("<span{}>{}</span>", is_soon, ago(lease.ends_at))


@register.simple_tag
def signs_of_life(abandonment: Abandonment) -> SafeString:
    """Render signs of life as items of a list.

    The list of abandoned workspaces has hundreds: without a template for each.
    """
    return format_html_join(
        "",
        "<li{}>{}<span>{}{}</span></li>",
        (
            (
                SafeString("" if sign.is_old else ' class="signal-fresh"'),
                icon("waiting" if sign.is_old else "info"),
                capfirst(sign.sentence),
                _last_seen(sign),
            )
            for sign in abandonment.signals
        ),
    )


def _last_seen(sign: Signal) -> SafeString:
    if sign.at is None:
        return SafeString("")
    return format_html(', <span class="aside">last on {}</span>', exact(sign.at))
