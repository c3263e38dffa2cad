"""Pages of snapshots of workspaces, and of their policies."""

from __future__ import annotations

from functools import partial

from django.forms import model_to_dict
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from provisioner.web.forms import AskingForm
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST
from provisioner.workspace_snapshots import actions
from provisioner.workspace_snapshots.forms import SnapshotPolicyForm, TakeBackForm
from provisioner.workspace_snapshots.models import (
    KEPT_BEFORE_RESTORES,
    SnapshotPolicy,
    WorkspaceSnapshot,
)
from provisioner.workspace_snapshots.overviews import (
    snapshot_work,
    snapshots_overview,
)
from provisioner.workspace_snapshots.queries import snapshots_of
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import workspaces_visible_to
from provisioner.workspaces.views import for_changing


@require_safe_or_POST
@administrators_only
def snapshot_policy_list(request: WebRequest) -> HttpResponse:
    """List the policies, and add one, or change the one that the address names."""
    policies = list(SnapshotPolicy.objects.select_related("site", "template"))
    named = request.GET.get("policy")
    saved = next((each for each in policies if str(each.pk) == named), None)
    initial = model_to_dict(saved, SnapshotPolicyForm.base_fields) if saved else {}
    form = SnapshotPolicyForm(posted(request), initial=initial)
    if form.tried(actions.snapshot_policy_save, by=request.user):
        return done(request, "Saved.", "snapshot-policy-list")
    context = {"policies": policies, "saved": saved}
    return form_page(request, "workspace_snapshots/policies.html", form, **context)


@require_POST
@administrators_only
def snapshot_policy_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Delete a policy."""
    policy = get_object_or_404(SnapshotPolicy, pk=pk)
    act = partial(actions.snapshot_policy_delete, by=request.user, policy=policy)
    return acted(request, act, "snapshot-policy-list", said="Deleted.")


@require_safe
def workspace_snapshot_list(request: WebRequest, pk: int) -> HttpResponse:
    """List the snapshots of a workspace."""
    visible = workspaces_visible_to(request.user)
    workspace: Workspace = get_object_or_404(visible, pk=pk)
    may_change = can_change_workspace(request.user, workspace)
    return render(
        request,
        "workspace_snapshots/list.html",
        {
            "workspace": workspace,
            "snapshots": snapshots_of(workspace),
            "taken": snapshots_overview(workspace),
            "may_change": may_change and workspace.state == Workspace.State.READY,
        },
    )


@require_safe_or_POST
@for_changing
def workspace_snapshot(
    request: WebRequest, workspace: Workspace, snapshot_pk: int
) -> HttpResponse:
    """Show what changed since a snapshot, and take back files from it."""
    snapshot = _snapshot(workspace, snapshot_pk)
    form = TakeBackForm(posted(request), initial={"path": request.GET.get("path")})
    if form.tried(actions.snapshot_take_back, by=request.user, snapshot=snapshot):
        return redirect("workspace-snapshot", workspace.pk, snapshot.pk)
    return form_page(
        request,
        "workspace_snapshots/detail.html",
        form,
        workspace=workspace,
        snapshot=snapshot,
        work=snapshot_work(snapshot),
    )


@require_POST
@for_changing
def workspace_snapshot_compare(
    request: WebRequest, workspace: Workspace, snapshot_pk: int
) -> HttpResponse:
    """Compare a workspace with a snapshot."""
    snapshot = _snapshot(workspace, snapshot_pk)
    act = partial(actions.snapshot_compare, by=request.user, snapshot=snapshot)
    return acted(request, act, "workspace-snapshot", workspace.pk, snapshot.pk)


@require_POST
@for_changing
def workspace_snapshot_retry(
    request: WebRequest, workspace: Workspace, snapshot_pk: int
) -> HttpResponse:
    """Take back what the last restore from a snapshot could not write."""
    snapshot = _snapshot(workspace, snapshot_pk)
    act = partial(actions.snapshot_retry, by=request.user, snapshot=snapshot)
    return acted(request, act, "workspace-snapshot", workspace.pk, snapshot.pk)


@require_safe_or_POST
@for_changing
def workspace_snapshot_restore(
    request: WebRequest, workspace: Workspace, snapshot_pk: int
) -> HttpResponse:
    """Say what a restore to a snapshot does, and begin it."""
    snapshot = _snapshot(workspace, snapshot_pk)
    form = AskingForm(posted(request))
    if form.tried(actions.snapshot_restore, by=request.user, snapshot=snapshot):
        return redirect("workspace-snapshot", workspace.pk, snapshot.pk)
    return form_page(
        request,
        "workspace_snapshots/restore.html",
        form,
        workspace=workspace,
        snapshot=snapshot,
        kept=KEPT_BEFORE_RESTORES,
    )


def _snapshot(workspace: Workspace, pk: int) -> WorkspaceSnapshot:
    snapshots = snapshots_of(workspace).select_related("workspace__site")
    return get_object_or_404(snapshots, pk=pk)
