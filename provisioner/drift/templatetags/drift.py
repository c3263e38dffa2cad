"""Template filters for findings."""

from __future__ import annotations

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.drift.models import Finding
from provisioner.web.templatetags.cloneyard import ago

register = template.Library()


@register.filter
def standing(finding: Finding) -> SafeString | str:
    """Say how a finding was resolved, when its repair was requested, or what to do."""
    if finding.resolved_at is not None:
        by = f" by {finding.resolved_by.username}" if finding.resolved_by else ""
        return format_html(
            '{} <span class="aside">{}{}</span>',
            *(finding.resolution, ago(finding.resolved_at), by),
        )
    if finding.asked_at is not None:
        return format_html("Requested {}", ago(finding.asked_at))
    return finding.get_action_display()
