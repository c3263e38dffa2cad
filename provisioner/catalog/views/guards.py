"""Access to pages that change a template."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog.models import Template


def require_may_change(user: User, template: Template) -> None:
    """Answer with the 403 page if the person may not change the template."""
    if not permissions.can_change_template(user, template):
        raise PermissionDenied(
            "This page is for the template's owner and administrators."
        )
