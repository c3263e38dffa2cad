"""Looking at a template's definition: before it is saved, and whenever asked."""

from __future__ import annotations

from typing import Any

from provisioner.accounts.models import User
from provisioner.workspaces import permissions, sanity
from provisioner.workspaces.actions.templates import check_definition
from provisioner.workspaces.models import Site, Template, TemplateCheck


def template_preview(
    *, by: User, site: Site, name: str = "preview", **fields: Any
) -> sanity.Check:
    """Say what is to be remarked on a definition. Nothing is saved.

    Raises: NotAllowed, InvalidRequest, TemplateInvalid.
    """
    permissions.require(permissions.can_manage_templates(by))
    template = Template(site=site, name=name, created_by=by, **fields)
    check_definition(template)
    return sanity.look(template)


def template_check(*, by: User, template: Template) -> TemplateCheck:
    """Look at a template's definition now; its page shows what was found.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_manage_templates(by))
    return sanity.keep(template, sanity.look(template))
