"""The page that checks a workspace for unsubmitted work."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRedirect

from provisioner.lib.refusals import ActionRefused
from provisioner.web.http import WebRequest
from provisioner.web.posting import require_safe_or_POST
from provisioner.workspaces.actions import checking
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.unsubmitted import find_unsubmitted_work
from provisioner.workspaces.views.guards import for_changing

# The pages that show what was found, by what is to be done with it.
SHOWN_AT = {"transfer": "workspace-transfer", "retire": "workspace-retire"}


@require_safe_or_POST
@vary_on_headers("HX-Request")
@for_changing
def workspace_check(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Start a check; htmx gets its progress or what it found."""
    if request.method == "POST":
        return _begun(request, workspace)
    work = find_unsubmitted_work(request.user, pk=workspace.pk)
    if work is None:
        raise Http404
    if not request.htmx:
        page = reverse("workspace-detail", args=[workspace.pk])
        return redirect(f"{page}#unsubmitted")
    context = {
        "unsubmitted": work,
        "workspace": work.workspace,
        "announcement": work.announcement,
    }
    return render(request, "workspaces/_unsubmitted.html", context)


def _begun(request: WebRequest, workspace: Workspace) -> HttpResponse:
    try:
        checking.workspace_check(by=request.user, workspace=workspace)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
        page = reverse("workspace-detail", args=[workspace.pk])
        return HttpResponseClientRedirect(page) if request.htmx else redirect(page)
    # A request of htmx is one still after the redirection, and gets its part.
    shown_at = SHOWN_AT.get(request.POST.get("then", ""), "workspace-check")
    return redirect(shown_at, workspace.pk)
