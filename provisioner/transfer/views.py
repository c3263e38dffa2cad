"""Pages of a transfer: preview, choices, and stopping it."""

from __future__ import annotations

from functools import partial

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST
from django.views.decorators.vary import vary_on_headers

from provisioner.transfer import actions, previews
from provisioner.transfer.forms import TransferForm
from provisioner.web.http import WebRequest, posted
from provisioner.web.posting import acted, form_page, require_safe_or_POST
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.views import for_changing


@require_safe_or_POST
@vary_on_headers("HX-Request")
@for_changing
def workspace_transfer(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Preview a transfer, and request it."""
    overview = previews.find_transfer_preview(request.user, pk=workspace.pk)
    if overview is None:
        raise Http404
    workspace = overview.workspace
    form = TransferForm(posted(request), workspace=workspace)
    act = actions.workspace_transfer
    if made := form.tried(act, by=request.user, workspace=workspace):
        return redirect("workspace-detail", made.pk)
    is_part = request.htmx and not form.is_bound
    page = "transfer/_transfer_form.html" if is_part else "transfer/create.html"
    return form_page(request, page, form, overview=overview, workspace=workspace)


@require_POST
@for_changing
def workspace_transfer_abort(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Stop a transfer: retire the new workspace with all copies."""
    abort = actions.workspace_transfer_abort
    act = partial(abort, by=request.user, workspace=workspace)
    return acted(request, act, "workspace-detail", workspace.pk)
