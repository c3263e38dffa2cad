"""Pages of refreshes: policies, and the switches that pause them."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
)

from provisioner.catalog import freshness, refresh_overview
from provisioner.catalog.actions import refresh
from provisioner.catalog.actions.refresh import refresh_policy_save
from provisioner.catalog.forms.refresh import RefreshPauseForm, RefreshPolicyForm
from provisioner.catalog.lists import REFRESHES
from provisioner.catalog.queries import templates_visible_to
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def refresh_list(request: WebRequest) -> HttpResponseBase:
    """Show each template's refresh policy, and what stops it; pause several."""
    context = {"refreshes": refresh_overview.refreshes_now()}
    return list_answer(request, REFRESHES, "catalog/refreshes.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def template_refresh(request: WebRequest, pk: int) -> HttpResponse:
    """Change a template's refresh policy."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    form = RefreshPolicyForm(
        posted(request),
        initial=RefreshPolicyForm.initial_of(freshness.policy_of(template)),
    )
    saved = form.tried(
        lambda: refresh_policy_save(
            by=request.user, template=template, **form.cleaned_data
        )
    )
    if saved is not None:
        messages.success(request, "Saved.")
        return redirect("template-detail", template.pk)
    return render(
        request,
        "catalog/refresh.html",
        {"form": form, "template": template},
        status=form.http_code,
    )


@require_POST
@administrators_only
def refresh_pause(request: WebRequest) -> HttpResponse:
    """Turn a pause switch on or off."""
    form = RefreshPauseForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose what to pause or resume.")
        return redirect("refresh-list")
    is_paused = form.cleaned_data["do"] == "pause"
    server = form.cleaned_data["server"]
    refresh.refresh_pause(by=request.user, server=server, is_paused=is_paused)
    messages.success(request, "Paused." if is_paused else "Resumed.")
    if server is not None:
        return redirect("perforce-server-detail", server.pk)
    return redirect("refresh-list")
