"""Workspace requests."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from provisioner.catalog.queries import templates_visible_to
from provisioner.lib.refusals import ActionRefused
from provisioner.web.http import WebRequest, posted
from provisioner.workspace_requests import actions
from provisioner.workspace_requests.forms import WorkspaceCreateForm
from provisioner.workspace_requests.requests import WorkspaceRequest


@require_http_methods(["GET", "HEAD", "POST"])
def workspace_create(request: WebRequest, template_pk: int) -> HttpResponse:
    """Request a workspace of a template; with the defaults, one click from any page."""
    template = get_object_or_404(templates_visible_to(request.user), pk=template_pk)
    form = WorkspaceCreateForm(posted(request), template=template)
    if form.is_valid():
        try:
            workspace = actions.workspace_create(
                WorkspaceRequest(
                    by=request.user, template=template, **form.cleaned_data
                )
            )
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            return redirect("workspace-detail", workspace.pk)
    return render(
        request,
        "workspace_requests/create.html",
        {"form": form, "template": template},
        status=form.http_code,
    )
