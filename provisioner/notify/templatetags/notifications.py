"""Template tags for notifications on pages of templates."""

from __future__ import annotations

from typing import Any

from django import template as library
from django.template import Context

from provisioner.accounts.mails import NO_MAILS, mails_are_sent, why_no_mail_to
from provisioner.accounts.models import User
from provisioner.catalog.models import Template, TemplateCheck
from provisioner.notify.channels import why_no_mail_about
from provisioner.notify.models import Subscription

register = library.Library()


@register.simple_tag(takes_context=True)
def subscribed(context: Context, template: Template) -> bool:
    """Return whether the current user gets mails about a template."""
    user: Any = context["user"]
    return Subscription.objects.filter(template=template, user=user).exists()


@register.simple_tag
def why_no_mail(person: User | None = None, event: str = "") -> str:
    """Return why a person gets no mail, or ""; without a person, why nobody does.

    With an event, also if the person turned off mails about it.
    """
    if person is None:
        return "" if mails_are_sent() else NO_MAILS
    unwanted = why_no_mail_about(person, event) if event else ""
    return why_no_mail_to(person) or unwanted


@register.simple_tag
def check_of(template: Template) -> TemplateCheck | None:
    """Return the latest checks of a template's definition, or None."""
    check: TemplateCheck | None = getattr(template, "check_result", None)
    return check
