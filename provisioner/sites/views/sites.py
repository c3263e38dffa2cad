"""Pages of sites: the list, one site, connecting and testing it."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.sites.actions import sites as site_actions
from provisioner.sites.actions.sites import site_connect, site_save
from provisioner.sites.forms import SiteForm
from provisioner.sites.models import Site
from provisioner.sites.queries import find_site_overview
from provisioner.sites.views.connecting import (
    asked,
    connection_context,
    connection_part,
    is_to_be_tested,
    saved,
)
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.notices import Action
from provisioner.web.posting import require_safe_or_POST


@require_safe_or_POST
@administrators_only
def site_create(request: WebRequest) -> HttpResponse:
    """Connect a site."""
    return _saved(request, SiteForm(posted(request)), page="sites/create.html")


@require_safe
@vary_on_headers("HX-Request")
@administrators_only
def site_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a site and the latest test of its connection; htmx gets only the latter."""
    context = _context(request, pk)
    if request.htmx:
        return connection_part(request, context)
    return render(request, "sites/detail.html", context)


@require_safe_or_POST
@administrators_only
def site_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change a site."""
    site = get_object_or_404(Site, pk=pk)
    form = SiteForm(posted(request), instance=site)
    return _saved(request, form, page="sites/edit.html")


@require_POST
@vary_on_headers("HX-Request")
@administrators_only
def site_test(request: WebRequest, pk: int) -> HttpResponse:
    """Test the connection to a site."""
    site = get_object_or_404(Site.objects.select_related("perforce_server"), pk=pk)
    site_actions.site_test(by=request.user, site=site)
    return asked(request, _context(request, pk))


@require_POST
@vary_on_headers("HX-Request")
@administrators_only
def site_try_out(request: WebRequest, pk: int) -> HttpResponse:
    """Ask a host of a site to try everything with a small volume."""
    site_actions.site_try_out(by=request.user, site=get_object_or_404(Site, pk=pk))
    return asked(request, _context(request, pk))


def _context(request: WebRequest, pk: int) -> dict[str, Any]:
    overview = find_site_overview(request.user, pk=pk)
    if overview is None:
        raise Http404
    context = connection_context(overview, kind="site", pk=pk)
    context["try_url"] = reverse("site-try-out", args=[pk])
    edit = Action(label="Edit", url=reverse("site-edit", args=[pk]))
    return {**context, "site": overview.site, "actions": [edit]}


def _saved(request: WebRequest, form: SiteForm, *, page: str) -> HttpResponse:
    def save() -> Site:
        act = site_connect if is_to_be_tested(request) else site_save
        return act(by=request.user, site=form.instance)

    return saved(request, form, save, kind="site", page=page, variable="ONTAP_PASSWORD")
