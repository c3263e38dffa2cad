"""What runs at Perforce servers and what waits; the switch that pauses one."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.refresh_forms import ReasonForm
from provisioner.workspaces import actions
from provisioner.workspaces.errors import ActionRefused
from provisioner.workspaces.models import PerforceServer
from provisioner.workspaces.turns_overview import turns_for


@require_safe
@administrators_only
def perforce_server_list(request: WebRequest) -> HttpResponse:
    """Show what runs at each server, who waits, and how many may run."""
    context = {"servers": turns_for(request.user), "form": ReasonForm()}
    return render(request, "administration/perforce_servers.html", context)


@require_POST
@administrators_only
def perforce_server_pause(request: WebRequest, pk: int) -> HttpResponse:
    """Let nothing begin that uses a server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    form = ReasonForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    try:
        actions.perforce_server_pause(by=request.user, server=server, reason=reason)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    else:
        messages.success(request, f"{server.name} is paused.")
    return redirect("perforce-server-list")


@require_POST
@administrators_only
def perforce_server_resume(request: WebRequest, pk: int) -> HttpResponse:
    """Let what waits for a server go on."""
    server = get_object_or_404(PerforceServer, pk=pk)
    if actions.perforce_server_resume(by=request.user, server=server):
        messages.success(request, f"{server.name} goes on.")
    return redirect("perforce-server-list")
