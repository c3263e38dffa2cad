"""Pages of leases, of their policies, and of abandoned workspaces."""

from __future__ import annotations

from functools import partial

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.catalog.models import Template
from provisioner.leases import abandoned, queries
from provisioner.leases.actions import leases as leases_actions
from provisioner.leases.actions import policies as lease_policies
from provisioner.leases.actions.policies import (
    lease_policy_preview,
    lease_policy_remove_preview,
    lease_policy_save,
)
from provisioner.leases.forms import (
    LeaseExtendForm,
    LeaseKeepForm,
    LeasePolicyForm,
)
from provisioner.leases.lists import ABANDONED, TEMPLATE_POLICIES
from provisioner.leases.models import LeasePolicy
from provisioner.leases.refusals import PreviewStale
from provisioner.lib.refusals import ActionRefused
from provisioner.lib.times import exact
from provisioner.web.bulk import MOST_AT_A_TIME
from provisioner.web.http import WebRequest, administrators_only, digest, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.views import for_changing


@require_safe_or_POST
@for_changing
def workspace_extend(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Extend a lease: by the default, by a duration, or until a day."""
    form = LeaseExtendForm(posted(request))
    act = leases_actions.workspace_extend
    if extended := form.tried(act, by=request.user, workspace=workspace):
        assert extended.expires_at is not None
        said = f"The lease of {extended.name} lasts until {exact(extended.expires_at)}."
        return done(request, said, "workspace-detail", workspace.pk)
    policy = queries.policy_for(workspace.template, workspace.purpose)
    deadline = queries.deadline_of(workspace, policy, timezone.now())
    context = {"workspace": workspace, "deadline": deadline}
    return form_page(request, "leases/extend.html", form, **context)


@require_safe_or_POST
@for_changing
def workspace_keep(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Keep a workspace without an end, for a reason."""
    form = LeaseKeepForm(posted(request))
    act = leases_actions.workspace_keep
    if form.tried(act, by=request.user, workspace=workspace):
        said = f"{workspace.name} is kept."
        return done(request, said, "workspace-detail", workspace.pk)
    return form_page(request, "leases/keep.html", form, workspace=workspace)


@require_POST
@for_changing
def workspace_release(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Release a kept workspace, so that it has a lease again."""
    act = leases_actions.workspace_release
    said = f"{workspace.name} has a lease again."
    return acted(
        request,
        partial(act, by=request.user, workspace=workspace),
        "workspace-detail",
        workspace.pk,
        said=said,
    )


@require_safe_or_POST
@administrators_only
def lease_policy_list(request: WebRequest) -> HttpResponseBase:
    """Show how long workspaces live, by purpose and by template; remove many."""
    policies = queries.saved_policies()
    purposes = [
        {"purpose": purpose, "policy": policies.of(None, purpose)}
        for purpose in Workspace.Purpose
    ]
    general = {
        row.purpose: row for row in LeasePolicy.objects.filter(template__isnull=True)
    }
    context = {"purposes": purposes, "general": general}
    return list_answer(request, TEMPLATE_POLICIES, "leases/policies.html", context)


@require_safe_or_POST
@administrators_only
def lease_policy_edit(request: WebRequest) -> HttpResponse:
    """Change a policy: show the preview first, save when it is sent again."""
    form = LeasePolicyForm(posted(request), initial=_present_policy(request))
    preview = None
    if form.is_valid():
        is_save = request.POST.get("do") == "save"
        try:
            preview = lease_policy_preview(by=request.user, **form.policy())
            if is_save:
                # Without a seal nothing was shown: "none" is the seal of no preview.
                lease_policy_save(
                    by=request.user,
                    seal=form.cleaned_data["seal"] or "none",
                    **form.policy(),
                )
                said = f"Saved. {_moved(preview.moving)}"
                return done(request, said, "lease-policy-list")
        except ActionRefused as refusal:
            form.refuse(refusal)
            if not isinstance(refusal, PreviewStale):
                preview = None
        if preview is not None:
            form.sealed(preview.seal)
    return form_page(request, "leases/policy.html", form, preview=preview)


def _present_policy(request: WebRequest) -> dict[str, object]:
    """Return the current policy for the address's template and purpose."""
    purpose = request.GET.get("purpose", "")
    if purpose not in Workspace.Purpose.values:
        purpose = Workspace.Purpose.DEVELOPMENT
    named = request.GET.get("template", "")
    template = None
    if named.isascii() and named.isdecimal() and len(named) < 19:
        template = Template.objects.filter(pk=int(named)).first()
    policy = queries.saved_policies().of(template.pk if template else None, purpose)
    return {"template": template, "purpose": purpose, **vars(policy)}


def _moved(count: int) -> str:
    return "1 deadline moved." if count == 1 else f"{count} deadlines moved."


@require_safe_or_POST
@administrators_only
def lease_policy_remove(request: WebRequest, pk: int) -> HttpResponse:
    """Remove a policy, after showing which workspaces that affects."""
    row = get_object_or_404(LeasePolicy.objects.select_related("template"), pk=pk)
    preview = lease_policy_remove_preview(by=request.user, row=row)
    error = ""
    if request.method == "POST":
        seal = request.POST.get("seal") or "none"
        try:
            lease_policies.lease_policy_remove(by=request.user, row=row, seal=seal)
        except ActionRefused as refusal:
            error = refusal.sentence
        else:
            said = f"Removed. {_moved(preview.moving)}"
            return done(request, said, "lease-policy-list")
    return render(
        request,
        "leases/policy_remove.html",
        {"row": row, "preview": preview, "error": error},
        status=409 if error else 200,
    )


@require_safe_or_POST
@administrators_only
def abandoned_list(request: WebRequest) -> HttpResponseBase:
    """List what looks abandoned, and why. Mail owners or retire in bulk."""
    progress = abandoned.retirements_of_abandoned(request.user)
    lines = progress.lines[:MOST_AT_A_TIME]
    context = {
        "reclaimable": abandoned.reclaimable(request.user),
        "progress": progress,
        "pks": ",".join(str(line.workspace.pk) for line in lines),
    }
    return list_answer(request, ABANDONED, "leases/abandoned.html", context)


@require_safe
@administrators_only
@vary_on_headers("HX-Request")
def abandoned_progress(request: WebRequest) -> HttpResponse:
    """Show the progress of a bulk retirement."""
    named = request.GET.get("workspaces", "").split(",")[:MOST_AT_A_TIME]
    pks = [int(pk) for pk in named if pk.isascii() and pk.isdecimal() and len(pk) < 19]
    progress = abandoned.retirement_progress(request.user, pks=pks)
    context: dict[str, object] = {
        "progress": progress,
        "pks": ",".join(map(str, pks)),
    }
    if not request.htmx:
        return render(request, "leases/abandoned_progress.html", context)
    context["has_changed"] = request.GET.get("said") != digest(progress.announcement)
    return render(request, "leases/_abandoned_progress.html", context)
