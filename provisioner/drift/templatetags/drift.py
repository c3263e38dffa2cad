"""How findings look on pages."""

from __future__ import annotations

from django import template
from django.contrib.humanize.templatetags.humanize import intcomma
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.drift.models import Finding

register = template.Library()


@register.simple_tag
def open_findings() -> SafeString | str:
    """Return how many differences wait for an administrator, "" for none."""
    number = Finding.objects.filter(resolved_at=None).count()
    if not number:
        return ""
    return format_html(' <span class="tally">({})</span>', intcomma(number))
