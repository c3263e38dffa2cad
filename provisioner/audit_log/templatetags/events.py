"""Template filters for events."""

from __future__ import annotations

from django import template
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.audit_log.models import Event

register = template.Library()


@register.filter
def subject_link(event: Event) -> SafeString | str:
    """Return the subject of an event, as a link if it has a page."""
    url = ""
    if event.workspace is not None and not event.workspace.is_pooled:
        url = reverse("workspace-detail", args=[event.workspace_id])
    elif event.template_id:
        url = reverse("template-detail", args=[event.template_id])
    elif event.subject_kind == Event.SubjectKind.MIRROR:
        url = reverse("mirror-detail", args=[event.subject_id])
    if not url:
        return event.subject
    return format_html('<a href="{}">{}</a>', url, event.subject)


@register.filter
def subject_unless(event: Event, known: str) -> SafeString | str:
    """Return the subject of an event with a colon, "" if readers know it."""
    if event.subject in ("", known):
        return ""
    return format_html("{}: ", subject_link(event))
