"""Pages of drift: findings and their repairs, for administrators."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.html import format_html
from django.views.decorators.http import require_POST

from provisioner.drift import evidence
from provisioner.drift.actions import (
    adoptable,
    drift_check_start,
    finding_resolve,
    findings_adopt,
)
from provisioner.drift.comparison.previews import preview
from provisioner.drift.lists import FINDINGS
from provisioner.drift.models import DriftCheck, Finding
from provisioner.lib.refusals import ActionRefused
from provisioner.web.http import WebRequest, administrators_only
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.posting import done, require_safe_or_POST
from provisioner.web.templatetags.cloneyard import ago


@require_safe_or_POST
@administrators_only
def drift(request: WebRequest) -> HttpResponseBase:
    """List findings and the last check of each system; resolve in bulk."""
    runs = DriftCheck.objects.select_related("site")
    check = Action(
        label="Check now", url=reverse("drift-check"), is_post=True, icon="search"
    )
    context = {"runs": runs, "adoptable": adoptable().count(), "actions": [check]}
    return list_answer(request, FINDINGS, "drift/list.html", context)


@require_POST
@administrators_only
def drift_adopt(request: WebRequest) -> HttpResponse:
    """Request the adoption of every workspace that is missing from the database."""
    count = findings_adopt(by=request.user)
    said = f"Requested the adoption of {count:,}. Reload this page in a moment."
    return done(request, said, "drift")


@require_POST
@administrators_only
def drift_check(request: WebRequest) -> HttpResponse:
    """Request a drift check."""
    drift_check_start(by=request.user)
    said = "Drift check queued. Reload this page in a moment."
    return done(request, said, "drift")


@require_safe_or_POST
@administrators_only
def finding_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a finding with its evidence and repair; repair it when confirmed."""
    finding = get_object_or_404(
        Finding.objects.select_related(
            "site", "workspace", "template", "mirror", "asked_by", "resolved_by"
        ),
        pk=pk,
    )
    status = 200
    refusal = ""
    if request.method == "POST":
        try:
            finding_resolve(by=request.user, finding=finding)
        except ActionRefused as error:
            refusal, status = error.sentence, 409
        else:
            said = f"Requested: {finding.subject}."
            return done(request, said, "finding-detail", finding.pk)
    context = {
        "finding": finding,
        "notices": _notices(finding, refusal),
        "repair": _repair(finding),
        "evidence": evidence.alone(finding),
        "comparison": evidence.compared(finding),
        "preview": preview(finding),
    }
    return render(request, "drift/detail.html", context, status=status)


def _repair(finding: Finding) -> Action | None:
    """Return the repair that the reader may request, or None."""
    if not finding.is_offered:
        return None
    is_removal = finding.action == Finding.Action.REMOVE
    return Action(
        label=finding.action_title,
        url=reverse("finding-detail", args=[finding.pk]),
        is_post=True,
        look="danger" if is_removal else "primary",
    )


def _notices(finding: Finding, refusal: str) -> list[Notice]:
    """Return a finding's state, and the result of the last repair."""
    notices = []
    if refusal:
        notices.append(Notice(level=Level.ERROR, texts=(refusal,), is_urgent=True))
    if finding.status_message:
        said = f"The last attempt failed: {finding.status_message}"
        notices.append(Notice(level=Level.WARNING, texts=(said,)))
    if finding.resolved_at is not None:
        by = f" by {finding.resolved_by.username}" if finding.resolved_by else ""
        said = format_html(
            "Resolved {}{}: {}", ago(finding.resolved_at), by, finding.resolution
        )
        notices.append(Notice(level=Level.SUCCESS, texts=(said,)))
    elif not finding.is_repairable:
        said = (
            "Cloneyard cannot safely repair this. The finding is resolved once the "
            "difference is gone."
        )
        notices.append(Notice(level=Level.INFO, texts=(said,)))
    elif finding.asked_at is not None:
        said = format_html(
            "{} requested the repair {}. Reload to see how it ended.",
            *(finding.asked_by, ago(finding.asked_at)),
        )
        notices.append(Notice(level=Level.INFO, texts=(said,), icon_name="running"))
    return notices
