"""Pages of refreshes: policies, and the switches that pause them."""

from __future__ import annotations

from django.contrib import messages
from django.forms import model_to_dict
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from provisioner.catalog import freshness, refresh_overview
from provisioner.catalog.actions import refresh
from provisioner.catalog.actions.refresh import refresh_policy_save
from provisioner.catalog.forms.refresh import RefreshPauseForm, RefreshPolicyForm
from provisioner.catalog.lists import REFRESHES
from provisioner.catalog.queries import templates_visible_to
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import done, form_page, require_safe_or_POST


@require_safe_or_POST
@administrators_only
def refresh_list(request: WebRequest) -> HttpResponseBase:
    """Show each template's refresh policy, and what stops it; pause several."""
    context = {"refreshes": refresh_overview.refreshes_now()}
    return list_answer(request, REFRESHES, "catalog/refreshes.html", context)


@require_safe_or_POST
@administrators_only
def template_refresh(request: WebRequest, pk: int) -> HttpResponse:
    """Change a template's refresh policy."""
    template = get_object_or_404(templates_visible_to(request.user), pk=pk)
    policy = freshness.policy_of(template)
    form = RefreshPolicyForm(posted(request), initial=model_to_dict(policy))
    if form.tried(refresh_policy_save, by=request.user, template=template):
        return done(request, "Saved.", "template-detail", pk)
    return form_page(request, "catalog/refresh.html", form, template=template)


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
    said = "Paused." if is_paused else "Resumed."
    if server is None:
        return done(request, said, "refresh-list")
    return done(request, said, "perforce-server-detail", server.pk)
