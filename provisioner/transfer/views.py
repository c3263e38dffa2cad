"""Pages of a transfer: preview, choices, and stopping it."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST
from django.views.decorators.vary import vary_on_headers

from provisioner.lib.refusals import ActionRefused
from provisioner.transfer import actions, previews
from provisioner.transfer.forms import TransferForm
from provisioner.web.http import WebRequest, posted
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.views.guards import for_changing


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
@for_changing
def workspace_transfer(request: WebRequest, pk: int) -> HttpResponse:
    """Preview a transfer, and request it."""
    overview = previews.find_transfer_preview(request.user, pk=pk)
    if overview is None:
        raise Http404
    form = TransferForm(posted(request), workspace=overview.workspace)
    if form.is_valid():
        try:
            made = actions.workspace_transfer(
                by=request.user, workspace=overview.workspace, **form.cleaned_data
            )
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            return redirect("workspace-detail", made.pk)
    is_part = request.htmx and not form.is_bound
    page = "transfer/_transfer_form.html" if is_part else "transfer/create.html"
    context = {"form": form, "overview": overview, "workspace": overview.workspace}
    return render(request, page, context, status=form.http_code)


@require_POST
@for_changing
def workspace_transfer_abort(request: WebRequest, pk: int) -> HttpResponse:
    """Stop a transfer: retire the new workspace with all copies."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    try:
        actions.workspace_transfer_abort(by=request.user, workspace=workspace)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    return redirect("workspace-detail", workspace.pk)
