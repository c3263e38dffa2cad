"""Pages of deduplication plans and their runs, and of data reduction."""

from __future__ import annotations

from django.forms import model_to_dict
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_safe

from provisioner.efficiency import actions
from provisioner.efficiency.forms import DedupePlanForm
from provisioner.efficiency.lists import REDUCTION, RUNS
from provisioner.efficiency.overviews import (
    latest_of_sites,
    plan_overviews,
    reduction_charts,
    volumes_of,
)
from provisioner.efficiency.queries import plan_of
from provisioner.lib import clocks
from provisioner.sites.models import Site
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import done, form_page, require_safe_or_POST


@require_safe
@administrators_only
def dedupe_run_list(request: WebRequest) -> HttpResponseBase:
    """List the runs, below the plans of all sites."""
    context = {"plans": plan_overviews(now=clocks.database_now())}
    return list_answer(request, RUNS, "efficiency/runs.html", context)


@require_safe_or_POST
@administrators_only
def dedupe_plan_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the plan of a site; below are its volumes, and what it does with each."""
    site = get_object_or_404(Site, pk=pk)
    plan = plan_of(site)
    initial = model_to_dict(plan, DedupePlanForm.base_fields)
    form = DedupePlanForm(posted(request), initial=initial)
    if form.tried(actions.dedupe_plan_save, by=request.user, site=site):
        return done(request, "Saved.", "dedupe-plan-edit", pk)
    context = {"site": site, "plan": plan, "volumes": volumes_of(plan)}
    return form_page(request, "efficiency/plan.html", form, **context)


@require_safe
@administrators_only
def reduction_list(request: WebRequest) -> HttpResponseBase:
    """List the data reduction by day, below the newest figures of each site."""
    days = latest_of_sites()
    charts = reduction_charts([day.site for day in days])
    context = {"days": days, "charts": charts}
    return list_answer(request, REDUCTION, "efficiency/reduction.html", context)
