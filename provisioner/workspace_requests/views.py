"""Workspace requests."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from provisioner.catalog.models import Snapshot, Template
from provisioner.catalog.queries import default_snapshot, templates_visible_to
from provisioner.sites.availability import why_away
from provisioner.web.http import WebRequest, posted
from provisioner.web.notices import Level, Notice
from provisioner.web.posting import form_page, require_safe_or_POST
from provisioner.workspace_requests import actions
from provisioner.workspace_requests.forms import WorkspaceCreateForm
from provisioner.workspace_requests.requests import WorkspaceRequest
from provisioner.workspaces.models import Workspace


@require_safe_or_POST
def workspace_create(request: WebRequest, template_pk: int) -> HttpResponse:
    """Request a workspace of a template; with the defaults, one click from any page."""
    template = get_object_or_404(templates_visible_to(request.user), pk=template_pk)
    form = WorkspaceCreateForm(posted(request), template=template, by=request.user)

    def create(**asked: Any) -> Workspace:
        wanted = WorkspaceRequest(by=request.user, template=template, **asked)
        return actions.workspace_create(wanted)

    if workspace := form.tried(create):
        return redirect("workspace-detail", workspace.pk)
    page = "workspace_requests/create.html"
    default = default_snapshot(template)
    is_possible = request.user.uid is not None and _has_snapshots(template)
    context = {
        "template": template,
        "default": default,
        "notices": [*_notices(template, default), *_away(form)],
        "is_possible": is_possible,
    }
    return form_page(request, page, form, **context)


def _has_snapshots(template: Template) -> bool:
    return bool(vars(template)["has_snapshots"])


def _away(form: WorkspaceCreateForm) -> list[Notice]:
    """Return why a request at the usual site would wait, if so."""
    why = why_away(form.usual, getattr(form.usual, "capacity", None))
    if not why:
        return []
    then = "Requests there wait until it works again."
    if form.has_sites:
        then += " Choose another site to work now."
    return [Notice(level=Level.WARNING, texts=(why, then))]


def _notices(template: Template, default: Snapshot | None) -> list[Notice]:
    """Return why a template has no workspace, or none by default."""
    if template.is_archived:
        said = "This template is archived and gives no new workspaces."
        texts = (f"{said} {template.archive_reason}".strip(),)
        return [Notice(level=Level.WARNING, texts=texts)]
    if default is not None:
        return []
    if not _has_snapshots(template):
        said = (
            "This template has no published snapshot yet. You can get a workspace once "
            "its build has ended."
        )
        return [Notice(level=Level.INFO, texts=(said,))]
    said = (
        f"This template requires {template.wanted_quality} snapshots, and has none. "
        "Choose another snapshot, or wait for the next build."
    )
    return [Notice(level=Level.WARNING, texts=(said,))]
