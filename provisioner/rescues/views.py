"""Pages of a rescue: its contents, and the download."""

from __future__ import annotations

from django.contrib import messages
from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET, require_safe

from provisioner.lib.refusals import ActionRefused
from provisioner.rescues.actions import Download, rescue_contents, rescue_download
from provisioner.rescues.forms import ContentsForm
from provisioner.rescues.queries import rescues_of
from provisioner.web.http import WebRequest
from provisioner.web.notices import Action
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.views import for_changing


def download_answer(download: Download) -> StreamingHttpResponse:
    """Return the response that streams an archive, with its size as Content-Length."""
    disposition = content_disposition_header(True, download.file_name)
    return StreamingHttpResponse(
        download,
        content_type="application/x-tar",
        headers={
            "Content-Length": str(download.size_bytes),
            "Content-Disposition": disposition or "attachment",
        },
    )


@require_safe
@for_changing
def workspace_rescue(
    request: WebRequest, workspace: Workspace, *, rescue_pk: int
) -> HttpResponseBase:
    """Show the contents of a rescue, page by page."""
    rescue = get_object_or_404(rescues_of(workspace), pk=rescue_pk)
    form = ContentsForm(request.GET)
    start = (form.cleaned_data.get("start") if form.is_valid() else 0) or 0
    contents, why_not = None, ""
    if rescue.has_archive:
        try:
            contents = rescue_contents(by=request.user, rescue=rescue, start=start)
        except ActionRefused as refusal:
            why_not = refusal.sentence
    download = Action(
        label="Download the archive",
        url=reverse("workspace-rescue-download", args=[workspace.pk, rescue_pk]),
        icon="download",
    )
    context = {
        "rescue": rescue,
        "workspace": rescue.workspace,
        "contents": contents,
        "why_not": why_not,
        "actions": [download] if contents else [],
        "others": rescues_of(rescue.workspace).exclude(pk=rescue.pk),
    }
    return render(request, "rescues/detail.html", context)


@require_GET
@for_changing
def workspace_rescue_download(
    request: WebRequest, workspace: Workspace, *, rescue_pk: int
) -> HttpResponseBase:
    """Send the archive of a rescue; where it cannot be had, the page says why."""
    rescue = get_object_or_404(rescues_of(workspace), pk=rescue_pk)
    try:
        return download_answer(rescue_download(by=request.user, rescue=rescue))
    except ActionRefused as refusal:
        messages.error(request, refusal.sentence)
        return redirect("workspace-rescue", workspace.pk, rescue_pk)
