"""The page that checks a workspace for unsubmitted work."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods
from django.views.decorators.vary import vary_on_headers
from django_htmx.http import HttpResponseClientRedirect

from provisioner.lib.refusals import ActionRefused
from provisioner.web.http import WebRequest
from provisioner.workspaces.actions import checking
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.unsubmitted import find_unsubmitted_work
from provisioner.workspaces.views.guards import for_changing

# The pages that show what was found, by what is to be done with it.
SHOWN_AT = {"transfer": "workspace-transfer", "retire": "workspace-retire"}


@require_http_methods(["GET", "HEAD", "POST"])
@vary_on_headers("HX-Request")
@for_changing
def workspace_check(request: WebRequest, pk: int) -> HttpResponse:
    """Start a check; htmx gets its progress or what it found."""
    if request.method == "POST":
        return _begun(request, pk)
    work = find_unsubmitted_work(request.user, pk=pk)
    if work is None:
        raise Http404
    if not request.htmx:
        return redirect(reverse("workspace-detail", args=[pk]) + "#unsubmitted")
    context = {
        "unsubmitted": work,
        "workspace": work.workspace,
        "announcement": work.announcement,
    }
    return render(request, "workspaces/_unsubmitted.html", context)


def _begun(request: WebRequest, pk: int) -> HttpResponse:
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    try:
        checking.workspace_check(by=request.user, workspace=workspace)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
        if request.htmx:
            return HttpResponseClientRedirect(reverse("workspace-detail", args=[pk]))
        return redirect("workspace-detail", pk)
    # A request of htmx is one still after the redirection, and gets its part.
    return redirect(SHOWN_AT.get(request.POST.get("then", ""), "workspace-check"), pk)
