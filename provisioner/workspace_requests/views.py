"""Workspace requests."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from provisioner.catalog.queries import default_snapshot, templates_visible_to
from provisioner.web.http import WebRequest, posted
from provisioner.web.posting import form_page, require_safe_or_POST
from provisioner.workspace_requests import actions
from provisioner.workspace_requests.forms import WorkspaceCreateForm
from provisioner.workspace_requests.requests import WorkspaceRequest
from provisioner.workspaces.models import Workspace


@require_safe_or_POST
def workspace_create(request: WebRequest, template_pk: int) -> HttpResponse:
    """Request a workspace of a template; with the defaults, one click from any page."""
    template = get_object_or_404(templates_visible_to(request.user), pk=template_pk)
    form = WorkspaceCreateForm(posted(request), template=template)

    def create(**asked: Any) -> Workspace:
        wanted = WorkspaceRequest(by=request.user, template=template, **asked)
        return actions.workspace_create(wanted)

    if workspace := form.tried(create):
        return redirect("workspace-detail", workspace.pk)
    page = "workspace_requests/create.html"
    default = default_snapshot(template)
    return form_page(request, page, form, template=template, default=default)
