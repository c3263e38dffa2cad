"""Pages of disaster drills and their plans, for administrators."""

from __future__ import annotations

from functools import partial

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST, require_safe

from provisioner.drills import actions
from provisioner.drills.forms import DrillPlanForm
from provisioner.drills.lists import DRILLS
from provisioner.drills.models import DrillPlan
from provisioner.lib import clocks
from provisioner.sandboxes.overviews import plan_overviews
from provisioner.sandboxes.queries import plan_of
from provisioner.sites.models import PerforceServer
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST


@require_safe
@administrators_only
def drill_list(request: WebRequest) -> HttpResponseBase:
    """List the drills, below the plans of all servers."""
    context = {"plans": plan_overviews(DrillPlan, now=clocks.database_now())}
    return list_answer(request, DRILLS, "drills/list.html", context)


@require_safe_or_POST
@administrators_only
def drill_plan_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the plan of a server's drills."""
    server = get_object_or_404(PerforceServer, pk=pk)
    plan = plan_of(DrillPlan, server)
    form = DrillPlanForm(posted(request), plan=plan)
    if form.tried(actions.drill_plan_save, by=request.user, server=server):
        return done(request, "Saved.", "drill-list")
    return form_page(request, "drills/plan.html", form, server=server, plan=plan)


@require_POST
@administrators_only
def drill_start(request: WebRequest, pk: int) -> HttpResponse:
    """Begin a drill by the plan of a server, now."""
    server = get_object_or_404(PerforceServer, pk=pk)
    act = partial(actions.drill_start, by=request.user, server=server)
    said = "Begun. Its sandbox shows how far it is."
    return acted(request, act, "drill-list", said=said)
