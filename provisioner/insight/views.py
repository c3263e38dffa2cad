"""Pages of what runs at Perforce servers, and of how they are set up."""

from __future__ import annotations

from functools import partial

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from provisioner.insight import actions
from provisioner.insight.lists import PROCESSES
from provisioner.insight.models import Process
from provisioner.insight.overviews import overview_of
from provisioner.insight.queries import (
    configurations_visible_to,
    readings,
    recent_endings,
)
from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import acted, require_safe_or_POST


@require_safe
@administrators_only
def process_list(request: WebRequest) -> HttpResponseBase:
    """List the processes of all servers, and what becomes of those to end."""
    context = {"readings": readings(), "endings": recent_endings()}
    return list_answer(request, PROCESSES, "insight/processes.html", context)


@require_safe_or_POST
@administrators_only
def process_end(request: WebRequest, pk: int) -> HttpResponse:
    """Show what a process is, and end it when that is confirmed."""
    process = get_object_or_404(Process.objects.select_related("server"), pk=pk)
    if request.method == "POST":
        act = partial(actions.process_end, by=request.user, process=process)
        said = f"A worker ends {process}. What became of it is shown here."
        return acted(request, act, "process-list", said=said)
    return render(request, "insight/end_process.html", {"process": process})


@require_safe
@administrators_only
def configuration_list(request: WebRequest) -> HttpResponse:
    """Show how each server is set up, and what the rules would change."""
    found = configurations_visible_to(request.user)
    context = {"servers": [overview_of(each) for each in found]}
    return render(request, "insight/configurations.html", context)
