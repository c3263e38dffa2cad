"""The maintenance banner of every page."""

from __future__ import annotations

from typing import Any

from django import template
from django.utils import timezone

from provisioner.maintenance.queries import announced

register = template.Library()


@register.inclusion_tag("maintenance/_banner.html")
def maintenance_banner() -> dict[str, Any]:
    return {"announced": announced(), "now": timezone.now()}
