"""The maintenance banner of every page."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django import template
from django.utils import timezone
from django.utils.html import format_html

from provisioner.lib.prepared import Prepared
from provisioner.maintenance.models import Maintenance
from provisioner.maintenance.queries import announced
from provisioner.web.notices import Level, Notice
from provisioner.web.templatetags.cloneyard import exact

register = template.Library()

_ANNOUNCED = Prepared(announced, values=0)


@register.inclusion_tag("components/_notices.html")
def maintenance_banner() -> dict[str, Any]:
    now = timezone.now()
    return {"notices": [_notice(one, now) for one in _ANNOUNCED.rows()]}


def _notice(one: Maintenance, now: dt.datetime) -> Notice:
    """Return the notice of maintenance, a warning once it has begun."""
    has_begun, ends = one.starts_at <= now, exact(one.ends_at)
    since = "" if has_begun else format_html("from {} ", exact(one.starts_at))
    said = "<strong>Maintenance {}until {}.</strong> {}"
    return Notice(
        level=Level.WARNING if has_begun else Level.INFO,
        texts=(format_html(said, since, ends, one.message),),
    )
