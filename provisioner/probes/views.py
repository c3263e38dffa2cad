"""Pages of probes."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from provisioner.lib import clocks
from provisioner.probes import actions
from provisioner.probes.commands import ALLOWED
from provisioner.probes.forms import ProbePlanForm
from provisioner.probes.lists import TIMES
from provisioner.probes.overviews import probe_overviews
from provisioner.probes.queries import plan_of
from provisioner.sites.models import PerforceServer
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import done, form_page, require_safe_or_POST


@require_safe
@administrators_only
def probe_list(request: WebRequest) -> HttpResponseBase:
    """Show each server's weeks and charts, above every single time."""
    context = {"probes": probe_overviews(now=clocks.database_now())}
    return list_answer(request, TIMES, "probes/times.html", context)


@require_safe_or_POST
@administrators_only
def probe_plan_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the commands that are timed at a server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    plan = plan_of(server)
    initial = {"is_on": plan.is_on, "commands": plan.commands}
    form = ProbePlanForm(posted(request), initial=initial)
    if form.tried(actions.probe_plan_save, by=request.user, server=server):
        return done(request, "Saved.", "probe-list")
    context = {"server": server, "allowed": sorted(ALLOWED)}
    return form_page(request, "probes/plan.html", form, **context)
