"""The trail, for those who run the place."""

from __future__ import annotations

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_safe

from provisioner.web.filter_forms import TrailFilterForm
from provisioner.web.http import WebRequest, administrators_only, csv_answer
from provisioner.workspaces import trail_search

EVENTS_ON_A_PAGE = 100


@require_safe
@administrators_only
def trail(request: WebRequest) -> HttpResponse:
    """Show what happened, filtered and paged by the address."""
    form = TrailFilterForm(request.GET)
    events = trail_search.events_matching(request.user, **form.criteria())
    page = Paginator(events, EVENTS_ON_A_PAGE).get_page(request.GET.get("page"))
    return render(request, "administration/trail.html", {"form": form, "page": page})


@require_safe
@administrators_only
def trail_download(request: WebRequest) -> HttpResponseBase:
    """Send the same, all pages of it, as a table."""
    form = TrailFilterForm(request.GET)
    events = trail_search.events_matching(request.user, **form.criteria())
    return csv_answer("trail", trail_search.as_csv(events))
