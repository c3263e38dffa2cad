"""Pages of checkpoints with their plans, and of verified archives."""

from __future__ import annotations

from functools import partial

from django.forms import model_to_dict
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST, require_safe

from provisioner.lib import clocks
from provisioner.recipes import actions
from provisioner.recipes.forms import CheckpointPlanForm
from provisioner.recipes.lists import CHECKPOINTS, VERIFICATIONS, damaged_of
from provisioner.recipes.overviews import plan_overviews
from provisioner.recipes.queries import plan_of, verifications_visible_to
from provisioner.sites.models import PerforceServer
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST


@require_safe
@administrators_only
def checkpoint_list(request: WebRequest) -> HttpResponseBase:
    """List the checkpoints, below the plans of all servers."""
    context = {"plans": plan_overviews(now=clocks.database_now())}
    return list_answer(request, CHECKPOINTS, "recipes/checkpoints.html", context)


@require_safe_or_POST
@administrators_only
def checkpoint_plan_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the plan of a server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    plan = plan_of(server)
    initial = model_to_dict(plan, CheckpointPlanForm.base_fields)
    initial |= {"host": plan.host, "version": plan.version}
    form = CheckpointPlanForm(posted(request), initial=initial)
    if form.tried(actions.checkpoint_plan_save, by=request.user, server=server):
        return done(request, "Saved.", "checkpoint-list")
    return form_page(request, "recipes/plan.html", form, server=server, plan=plan)


@require_POST
@administrators_only
def checkpoint_make(request: WebRequest, pk: int) -> HttpResponse:
    """Make a checkpoint by the plan of a server, now."""
    server = get_object_or_404(PerforceServer, pk=pk)
    act = partial(actions.checkpoint_make, by=request.user, server=server)
    said = "Requested. Its sandbox shows how far it is."
    return acted(request, act, "checkpoint-list", said=said)


@require_safe
def verification_list(request: WebRequest) -> HttpResponseBase:
    """List what was verified."""
    return list_answer(request, VERIFICATIONS, "recipes/verifications.html")


@require_safe
def verification_detail(request: WebRequest, pk: int) -> HttpResponseBase:
    """Show a verification depot by depot, and every damaged file that is listed."""
    verification = get_object_or_404(verifications_visible_to(request.user), pk=pk)
    depots = list(verification.depots.all())
    context = {
        "verification": verification,
        "depots": depots,
        "not_listed": sum(each.damaged_number - each.listed for each in depots),
    }
    listing = damaged_of(verification)
    return list_answer(request, listing, "recipes/verification.html", context)
