"""Pages of leases and lease policies."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
)

from provisioner.catalog.models import Template
from provisioner.leases import queries
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
from provisioner.leases.lists.policies import TEMPLATE_POLICIES
from provisioner.leases.models import LeasePolicy
from provisioner.leases.refusals import PreviewStale
from provisioner.lib.refusals import ActionRefused
from provisioner.lib.times import exact
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.views.guards import for_changing


@require_http_methods(["GET", "HEAD", "POST"])
@for_changing
def workspace_extend(request: WebRequest, pk: int) -> HttpResponse:
    """Extend a lease: by the default, by a duration, or until a day."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    form = LeaseExtendForm(posted(request))
    extended = form.tried(
        lambda: leases_actions.workspace_extend(
            by=request.user, workspace=workspace, **form.asked()
        )
    )
    if extended is not None:
        assert extended.expires_at is not None
        until = exact(extended.expires_at)
        messages.success(request, f"The lease of {extended.name} lasts until {until}.")
        return redirect("workspace-detail", pk)
    policy = queries.policy_for(workspace.template, workspace.purpose)
    deadline = queries.deadline_of(workspace, policy, timezone.now())
    context = {"form": form, "workspace": workspace, "deadline": deadline}
    return render(request, "leases/extend.html", context, status=form.http_code)


@require_http_methods(["GET", "HEAD", "POST"])
@for_changing
def workspace_keep(request: WebRequest, pk: int) -> HttpResponse:
    """Keep a workspace without an end, for a reason."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    form = LeaseKeepForm(posted(request))
    kept = form.tried(
        lambda: leases_actions.workspace_keep(
            by=request.user, workspace=workspace, **form.cleaned_data
        )
    )
    if kept is not None:
        messages.success(request, f"{workspace.name} is kept.")
        return redirect("workspace-detail", pk)
    return render(
        request,
        "leases/keep.html",
        {"form": form, "workspace": workspace},
        status=form.http_code,
    )


@require_POST
@for_changing
def workspace_release(request: WebRequest, pk: int) -> HttpResponse:
    """Release a kept workspace, so that it has a lease again."""
    workspace = get_object_or_404(workspaces_visible_to(request.user), pk=pk)
    try:
        leases_actions.workspace_release(by=request.user, workspace=workspace)
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
    else:
        messages.success(request, f"{workspace.name} has a lease again.")
    return redirect("workspace-detail", pk)


@require_http_methods(["GET", "HEAD", "POST"])
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


@require_http_methods(["GET", "HEAD", "POST"])
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
                messages.success(
                    request,
                    f"Saved. {_moved(preview.moving)}",
                )
                return redirect("lease-policy-list")
        except ActionRefused as refusal:
            form.refuse(refusal)
            if not isinstance(refusal, PreviewStale):
                preview = None
        if preview is not None:
            form.sealed(preview.seal)
    return render(
        request,
        "leases/policy.html",
        {"form": form, "preview": preview},
        status=form.http_code,
    )


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
    return LeasePolicyForm.initial_of(policy, template=template, purpose=purpose)


def _moved(count: int) -> str:
    return "1 deadline moved." if count == 1 else f"{count} deadlines moved."


@require_http_methods(["GET", "HEAD", "POST"])
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
            messages.success(request, f"Removed. {_moved(preview.moving)}")
            return redirect("lease-policy-list")
    return render(
        request,
        "leases/policy_remove.html",
        {"row": row, "preview": preview, "error": error},
        status=409 if error else 200,
    )
