"""Pages to hold, withdraw, describe and roll back snapshots."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

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
from provisioner.web.forms import AskingForm
from provisioner.web.http import WebRequest, posted
from provisioner.web.posting import done, form_page, require_safe_or_POST


def _snapshot_to_change(request: WebRequest, pk: int) -> Snapshot:
    snapshot = get_object_or_404(snapshots_visible_to(request.user), pk=pk)
    require_may_change(request.user, snapshot.template)
    return snapshot


def _done(request: HttpRequest, snapshot: Snapshot, said: str) -> HttpResponse:
    page = reverse("template-detail", args=[snapshot.template_id])
    return done(request, said, f"{page}?snapshots=all#snapshot-{snapshot.pk}")


@require_safe_or_POST
def snapshot_hold(request: WebRequest, pk: int) -> HttpResponse:
    """Give new workspaces a snapshot until it is released."""
    snapshot = _snapshot_to_change(request, pk)
    form = ReasonForm(posted(request), initial={"reason": snapshot.hold_reason})
    if form.tried(snapshots.snapshot_hold, by=request.user, snapshot=snapshot):
        return _done(request, snapshot, _gets(snapshot))
    return _page(request, "catalog/snapshot_hold.html", form, snapshot)


def _gets(snapshot: Snapshot) -> str:
    return f"New workspaces get change {snapshot.change} until you release it."


@require_POST
def snapshot_release(request: WebRequest, pk: int) -> HttpResponse:
    """Release a held snapshot: new workspaces get the newest good one again."""
    snapshot = _snapshot_to_change(request, pk)
    snapshots.snapshot_release(by=request.user, snapshot=snapshot)
    said = "Released. New workspaces get the newest good snapshot again."
    return _done(request, snapshot, said)


@require_safe_or_POST
def snapshot_withdraw(request: WebRequest, pk: int) -> HttpResponse:
    """Show who is affected by withdrawing a snapshot; withdraw it when confirmed."""
    snapshot = _snapshot_to_change(request, pk)
    form = ReasonForm(posted(request))
    if form.tried(snapshots.snapshot_withdraw, by=request.user, snapshot=snapshot):
        said = f"Withdrawn. No new workspace gets {snapshot.name} now."
        return _done(request, snapshot, said)
    affected = {"pins": pins_of_snapshot(snapshot), "next": default_without(snapshot)}
    return _page(request, "catalog/snapshot_withdraw.html", form, snapshot, **affected)


@require_safe_or_POST
def snapshot_describe(request: WebRequest, pk: int) -> HttpResponse:
    """Change the label and the notes of a snapshot."""
    snapshot = _snapshot_to_change(request, pk)
    form = SnapshotDescribeForm(
        posted(request), initial={"label": snapshot.label, "notes": snapshot.notes}
    )
    if form.tried(snapshots.snapshot_describe, by=request.user, snapshot=snapshot):
        return _done(request, snapshot, "Saved.")
    return _page(request, "catalog/snapshot_describe.html", form, snapshot)


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
    return _done(request, snapshot, _gets(snapshot))


def _page(
    request: HttpRequest, page: str, form: AskingForm, of: Snapshot, **context: Any
) -> HttpResponse:
    return form_page(request, page, form, snapshot=of, template=of.template, **context)
