"""Pages of splits, of what holds snapshots, of ceilings, and of volumes' settings."""

from __future__ import annotations

from functools import partial

from django.forms import model_to_dict
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.catalog.models import Template, VolumePolicy
from provisioner.catalog.queries import templates_visible_to
from provisioner.engine.overviews import operation_overview
from provisioner.lib import clocks
from provisioner.sites.models import Ceiling, Site
from provisioner.storage import actions
from provisioner.storage.forms import (
    CeilingForm,
    FreeSpaceForm,
    SplitPolicyForm,
    VolumePolicyForm,
)
from provisioner.storage.freeing import space_plan
from provisioner.storage.lists import FILLING, SNAPSHOTS
from provisioner.storage.models import SplitPolicy
from provisioner.storage.overviews import ceilings_of, due_splits, volume_policies_of
from provisioner.storage.previews import own_bytes_chart, split_preview
from provisioner.web.forms import AskingForm
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_page
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.views import for_changing


@require_safe_or_POST
@vary_on_headers("HX-Request")
@for_changing
def workspace_split(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Show what a split copies and frees, or how far it is; request one."""
    form = AskingForm(posted(request))
    act = actions.workspace_split
    if form.tried(act, by=request.user, workspace=workspace):
        return redirect("workspace-split", workspace.pk)
    preview = split_preview(request.user, workspace)
    operation = preview.operation
    is_part = request.htmx and not form.is_bound
    return form_page(
        request,
        "storage/_split.html" if is_part else "storage/split.html",
        form,
        workspace=workspace,
        preview=preview,
        progress=operation_overview(operation) if operation is not None else None,
        chart=None if is_part else own_bytes_chart(workspace),
    )


@require_POST
@for_changing
def workspace_split_stop(request: WebRequest, workspace: Workspace) -> HttpResponse:
    """Stop a split; what was copied stays copied."""
    stop = actions.workspace_split_stop
    act = partial(stop, by=request.user, workspace=workspace)
    return acted(request, act, "workspace-split", workspace.pk)


held_snapshot_list = administrators_only(list_page(SNAPSHOTS, "storage/snapshots.html"))


filling_volume_list = administrators_only(list_page(FILLING, "storage/filling.html"))


@require_safe_or_POST
@administrators_only
def free_space(request: WebRequest) -> HttpResponse:
    """Show the plan that frees so much, and request its acts when confirmed."""
    form = FreeSpaceForm(posted(request) or request.GET or None)
    outcomes = plan = None
    if request.method == "POST":
        seal = request.POST.get("seal", "")
        outcomes = form.tried(actions.free_space, by=request.user, seal=seal)
    is_told = form.is_bound and (form.is_valid() or form.is_refused)
    if outcomes is None and is_told:
        now = clocks.database_now()
        plan = space_plan(request.user, now=now, **form.cleaned_data)
    return form_page(request, "storage/free.html", form, plan=plan, outcomes=outcomes)


@require_safe
@administrators_only
def split_policy_list(request: WebRequest) -> HttpResponse:
    """List the policies of all sites."""
    sites = Site.objects.select_related("split_policy").order_by("name")
    return render(request, "storage/policies.html", {"sites": sites})


@require_safe_or_POST
@administrators_only
def split_policy_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the policy of a site."""
    site = get_object_or_404(Site, pk=pk)
    policy = SplitPolicy.objects.filter(site=site).first() or SplitPolicy(site=site)
    initial = model_to_dict(policy, SplitPolicyForm.base_fields)
    form = SplitPolicyForm(posted(request), initial=initial)
    if form.tried(actions.split_policy_save, by=request.user, site=site):
        return done(request, "Saved.", "split-policy-edit", pk)
    due = due_splits(policy, now=clocks.database_now())
    context = {"site": site, "policy": policy, "due": due}
    return form_page(request, "storage/policy.html", form, **context)


@require_safe
@administrators_only
def ceiling_list(request: WebRequest) -> HttpResponse:
    """List the ceilings of all sites."""
    rows = ceilings_of(Site.objects.order_by("name"))
    return render(request, "storage/ceilings.html", {"rows": rows})


@require_safe_or_POST
@administrators_only
def ceiling_edit(request: WebRequest, pk: int, purpose: str) -> HttpResponse:
    """Change the ceiling of one purpose at a site."""
    if purpose not in Ceiling.Purpose:
        raise Http404
    site = get_object_or_404(Site, pk=pk)
    ceiling = Ceiling.objects.filter(site=site, purpose=purpose).first()
    initial = model_to_dict(ceiling, CeilingForm.base_fields) if ceiling else {}
    form = CeilingForm(posted(request), initial=initial)
    if form.tried(actions.ceiling_save, by=request.user, site=site, purpose=purpose):
        return done(
            request, "Saved. It is applied in ONTAP within minutes.", "ceiling-list"
        )
    label = Ceiling.Purpose(purpose).label
    context = {"site": site, "purpose": purpose, "label": label}
    return form_page(request, "storage/ceiling.html", form, **context)


@require_safe
@administrators_only
def volume_policy_list(request: WebRequest) -> HttpResponse:
    """List the settings of templates' volumes, of sites and of single templates."""
    rows = volume_policies_of(Site.objects.order_by("name"))
    return render(request, "storage/volume_policies.html", {"rows": rows})


@require_safe_or_POST
@administrators_only
def volume_policy_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the settings of templates' volumes at a site."""
    return _edit_volume_policy(request, site=get_object_or_404(Site, pk=pk))


@require_safe_or_POST
@administrators_only
def volume_policy_template(request: WebRequest, pk: int) -> HttpResponse:
    """Change what the volume of one template has instead."""
    visible = templates_visible_to(request.user).select_related("site")
    template = get_object_or_404(visible, pk=pk)
    return _edit_volume_policy(request, site=template.site, template=template)


def _edit_volume_policy(
    request: WebRequest, *, site: Site, template: Template | None = None
) -> HttpResponse:
    policies = VolumePolicy.objects.filter(site=site)
    policy = policies.filter(template=template).first()
    initial = model_to_dict(policy, VolumePolicyForm.base_fields) if policy else {}
    form = VolumePolicyForm(posted(request), initial=initial)
    save = partial(actions.volume_policy_save, site=site, template=template)
    if form.tried(save, by=request.user):
        said = "Saved. It is applied in ONTAP within minutes."
        return done(request, said, "volume-policy-list")
    context = {"site": site, "template": template}
    return form_page(request, "storage/volume_policy.html", form, **context)
