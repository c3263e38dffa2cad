"""Pages of checkpoints with their plans, and of verified archives."""

from __future__ import annotations

from functools import partial

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.views.decorators.http import require_POST, require_safe

from provisioner.lib import clocks
from provisioner.recipes import actions
from provisioner.recipes.forms import CheckpointPlanForm, VerificationPlanForm
from provisioner.recipes.lists import CHECKPOINTS, VERIFICATIONS, damaged_of
from provisioner.recipes.models import CheckpointPlan, VerificationPlan
from provisioner.recipes.queries import verifications_visible_to
from provisioner.sandboxes.overviews import plan_overviews
from provisioner.sandboxes.queries import plan_of
from provisioner.sites.models import PerforceServer
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST

REQUESTED = "Requested. Its sandbox shows how far it is."


@require_safe
@administrators_only
def checkpoint_list(request: WebRequest) -> HttpResponseBase:
    """List the checkpoints, below the plans of all servers."""
    context = {"plans": plan_overviews(CheckpointPlan, now=clocks.database_now())}
    return list_answer(request, CHECKPOINTS, "recipes/checkpoints.html", context)


@require_safe_or_POST
@administrators_only
def checkpoint_plan_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the plan of a server's checkpoints."""
    server = get_object_or_404(PerforceServer, pk=pk)
    plan = plan_of(CheckpointPlan, server)
    form = CheckpointPlanForm(posted(request), plan=plan)
    if form.tried(actions.checkpoint_plan_save, by=request.user, server=server):
        return done(request, "Saved.", "checkpoint-list")
    return form_page(request, "recipes/plan.html", form, server=server, plan=plan)


@require_POST
@administrators_only
def checkpoint_make(request: WebRequest, pk: int) -> HttpResponse:
    """Make a checkpoint by the plan of a server, now."""
    server = get_object_or_404(PerforceServer, pk=pk)
    act = partial(actions.checkpoint_make, by=request.user, server=server)
    return acted(request, act, "checkpoint-list", said=REQUESTED)


@require_safe
def verification_list(request: WebRequest) -> HttpResponseBase:
    """List what was verified; to administrators below the plans of all servers."""
    context = {}
    if request.user.is_administrator:
        plans = plan_overviews(VerificationPlan, now=clocks.database_now())
        context = {"plans": plans}
    return list_answer(request, VERIFICATIONS, "recipes/verifications.html", context)


@require_safe_or_POST
@administrators_only
def verification_plan_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the plan of a server's verifications."""
    server = get_object_or_404(PerforceServer, pk=pk)
    plan = plan_of(VerificationPlan, server)
    form = VerificationPlanForm(posted(request), plan=plan)
    if form.tried(actions.verification_plan_save, by=request.user, server=server):
        return done(request, "Saved.", "verification-list")
    template = "recipes/verification_plan.html"
    return form_page(request, template, form, server=server, plan=plan)


@require_POST
@administrators_only
def verification_make(request: WebRequest, pk: int) -> HttpResponse:
    """Verify the archives of a server by its plan, now."""
    server = get_object_or_404(PerforceServer, pk=pk)
    act = partial(actions.verification_make, by=request.user, server=server)
    return acted(request, act, "verification-list", said=REQUESTED)


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
