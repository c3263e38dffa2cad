"""Pages to hold, withdraw, describe and roll back snapshots."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from provisioner.catalog.actions import snapshots
from provisioner.catalog.forms.snapshots import (
    ReasonForm,
    RollBackForm,
    SnapshotDescribeForm,
)
from provisioner.catalog.models import Snapshot
from provisioner.catalog.queries import (
    default_without,
    snapshots_visible_to,
    templates_visible_to,
)
from provisioner.catalog.retention import pins_of_snapshot
from provisioner.catalog.views.guards import require_may_change
from provisioner.engine.models import Operation
from provisioner.lib.refusals import ActionRefused
from provisioner.web.http import WebRequest, posted


def _snapshot_to_change(request: WebRequest, pk: int) -> Snapshot:
    snapshot = get_object_or_404(snapshots_visible_to(request.user), pk=pk)
    require_may_change(request.user, snapshot.template)
    return snapshot


def _back(snapshot: Snapshot) -> HttpResponse:
    page = reverse("template-detail", args=[snapshot.template_id])
    return redirect(f"{page}?snapshots=all#snapshot-{snapshot.pk}")


@require_http_methods(["GET", "HEAD", "POST"])
def snapshot_hold(request: WebRequest, pk: int) -> HttpResponse:
    """Give new workspaces a snapshot until it is released."""
    snapshot = _snapshot_to_change(request, pk)
    form = ReasonForm(posted(request), initial={"reason": snapshot.hold_reason})
    held = form.tried(
        lambda: snapshots.snapshot_hold(
            by=request.user, snapshot=snapshot, **form.cleaned_data
        )
    )
    if held is not None:
        messages.success(request, _gets(snapshot))
        return _back(snapshot)
    return _page(request, "catalog/snapshot_hold.html", snapshot, form=form)


def _gets(snapshot: Snapshot) -> str:
    return f"New workspaces get change {snapshot.change} until you release it."


@require_POST
def snapshot_release(request: WebRequest, pk: int) -> HttpResponse:
    """Release a held snapshot: new workspaces get the newest good one again."""
    snapshot = _snapshot_to_change(request, pk)
    snapshots.snapshot_release(by=request.user, snapshot=snapshot)
    messages.success(request, "Released. New workspaces get the newest snapshot again.")
    return _back(snapshot)


@require_http_methods(["GET", "HEAD", "POST"])
def snapshot_withdraw(request: WebRequest, pk: int) -> HttpResponse:
    """Show who is affected by withdrawing a snapshot; withdraw it when confirmed."""
    snapshot = _snapshot_to_change(request, pk)
    form = ReasonForm(posted(request))
    withdrawn = form.tried(
        lambda: snapshots.snapshot_withdraw(
            by=request.user, snapshot=snapshot, **form.cleaned_data
        )
    )
    if withdrawn is not None:
        messages.success(request, f"Withdrawn. Nobody gets {snapshot.name} now.")
        return _back(snapshot)
    return _page(
        request,
        "catalog/snapshot_withdraw.html",
        snapshot,
        form=form,
        pins=pins_of_snapshot(snapshot),
        next=default_without(snapshot),
    )


@require_http_methods(["GET", "HEAD", "POST"])
def snapshot_describe(request: WebRequest, pk: int) -> HttpResponse:
    """Change the label and the notes of a snapshot."""
    snapshot = _snapshot_to_change(request, pk)
    form = SnapshotDescribeForm(
        posted(request), initial={"label": snapshot.label, "notes": snapshot.notes}
    )
    described = form.tried(
        lambda: snapshots.snapshot_describe(
            by=request.user, snapshot=snapshot, **form.cleaned_data
        )
    )
    if described is not None:
        messages.success(request, "Saved.")
        return _back(snapshot)
    return _page(request, "catalog/snapshot_describe.html", snapshot, form=form)


@require_POST
def template_roll_back(request: WebRequest, pk: int) -> HttpResponse:
    """Hold the last good snapshot from before a build that failed."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    require_may_change(request.user, template)
    form = RollBackForm(request.POST)
    number = form.cleaned_data["build"] if form.is_valid() else 0
    build = Operation.objects.filter(subject=template.subject_id)
    found = build.filter(pk=number).first()
    if found is None:
        messages.error(request, "This template has no such build.")
        return redirect("template-detail", pk)
    try:
        snapshot = snapshots.template_roll_back(
            by=request.user, template=template, build=found
        )
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
        return redirect("template-detail", pk)
    messages.success(request, _gets(snapshot))
    return _back(snapshot)


def _page(
    request: HttpRequest, page: str, snapshot: Snapshot, **context: Any
) -> HttpResponse:
    context |= {"snapshot": snapshot, "template": snapshot.template}
    return render(request, page, context, status=context["form"].http_code)
