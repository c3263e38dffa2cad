"""Check a template's definition, before it is saved and on demand."""

from __future__ import annotations

from typing import Any

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.catalog import checks
from provisioner.catalog.actions.templates import check_definition
from provisioner.catalog.models import Template, TemplateCheck
from provisioner.sites.models import Site


def template_preview(
    *, by: User, site: Site, name: str = "preview", **fields: Any
) -> checks.Check:
    """Return the remarks on a definition. Nothing is saved.

    Raises: NotAllowed, InvalidRequest, TemplateInvalid.
    """
    permissions.require(permissions.can_manage_templates(by))
    template = Template(site=site, name=name, owner=by, **fields)
    check_definition(template)
    return checks.look(template)


def template_check(*, by: User, template: Template) -> TemplateCheck:
    """Check a template's definition now; its page shows the result.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_manage_templates(by))
    return checks.keep(template, checks.look(template))
