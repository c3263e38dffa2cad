"""The list of Perforce servers, and pausing one."""

from __future__ import annotations

from functools import partial

from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from provisioner.sites.actions import pausing
from provisioner.sites.forms import PauseForm
from provisioner.sites.models import PerforceServer
from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.posting import acted, done


@require_POST
@administrators_only
def perforce_server_pause(request: WebRequest, pk: int) -> HttpResponse:
    """Pause a server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    form = PauseForm(request.POST)
    reason = form.cleaned_data["reason"] if form.is_valid() else ""
    pause = pausing.perforce_server_pause
    act = partial(pause, by=request.user, server=server, reason=reason)
    said = f"{server.name} is paused."
    return acted(request, act, "perforce-server-detail", pk, said=said)


@require_POST
@administrators_only
def perforce_server_resume(request: WebRequest, pk: int) -> HttpResponse:
    """Resume a server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    if pausing.perforce_server_resume(by=request.user, server=server):
        return done(request, f"{server.name} is resumed.", "perforce-server-detail", pk)
    return redirect("perforce-server-detail", pk)
