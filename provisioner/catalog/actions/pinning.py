"""Pinning templates to the top of a person's home page."""

from __future__ import annotations

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.models import PinnedTemplate, Template
from provisioner.lib.refusals import TooMany

MOST_PINNED = 24


def template_pin(*, by: User, template: Template) -> None:
    """Keep a template at the top of a person's home page. Safe to repeat.

    Raises: NotAllowed (a scoped token), TooMany.
    """
    permissions.require(permissions.can_be_told(by))
    others = PinnedTemplate.objects.filter(person=by).exclude(template=template)
    if others.count() >= MOST_PINNED:
        raise TooMany(
            most=MOST_PINNED,
            things="pinned templates",
            instead="Unpin one of them first.",
        )
    PinnedTemplate.objects.get_or_create(person=by, template=template)


def template_unpin(*, by: User, template: Template) -> None:
    """Remove a template from the top of the home page. Safe to repeat.

    Raises: NotAllowed (a scoped token).
    """
    permissions.require(permissions.can_be_told(by))
    PinnedTemplate.objects.filter(person=by, template=template).delete()
