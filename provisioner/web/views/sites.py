"""Sites: which there are, how they are, connecting and testing one."""

from __future__ import annotations

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import (
    require_http_methods,
    require_POST,
    require_safe,
)
from django.views.decorators.vary import vary_on_headers

from provisioner.web.http import (
    WebRequest,
    administrators_only,
    connection_part,
    posted,
)
from provisioner.web.site_forms import SiteForm
from provisioner.workspaces import actions
from provisioner.workspaces.connections_overview import (
    find_site_overview,
    own_variable,
    sites_for,
)
from provisioner.workspaces.errors import ActionRefused
from provisioner.workspaces.guide import guide_for
from provisioner.workspaces.models import Site


@require_safe
@administrators_only
def site_list(request: WebRequest) -> HttpResponse:
    """Show all sites and how they are."""
    return render(request, "sites/list.html", {"sites": sites_for(request.user)})


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def site_create(request: WebRequest) -> HttpResponse:
    """Connect a site."""
    return _saved(request, SiteForm(posted(request)), page="sites/create.html")


@require_safe
@vary_on_headers("HX-Request")
@administrators_only
def site_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a site and what was found about the way to it; to htmx that alone."""
    context = _context(request, pk)
    if request.htmx:
        return connection_part(request, context)
    return render(request, "sites/detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
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
    """Test the way to a site."""
    site = get_object_or_404(Site.objects.select_related("perforce_server"), pk=pk)
    actions.site_test(by=request.user, site=site)
    if request.htmx:
        return connection_part(request, _context(request, pk))
    if "from_guide" in request.POST:
        return redirect("welcome")
    return redirect("site-detail", pk)


@require_POST
@vary_on_headers("HX-Request")
@administrators_only
def site_try_out(request: WebRequest, pk: int) -> HttpResponse:
    """Have a host of a site try everything out with a small volume."""
    actions.site_try_out(by=request.user, site=get_object_or_404(Site, pk=pk))
    if request.htmx:
        return connection_part(request, _context(request, pk))
    return redirect("site-detail", pk)


def _context(request: WebRequest, pk: int) -> dict[str, object]:
    overview = find_site_overview(request.user, pk=pk)
    if overview is None:
        raise Http404
    return {
        "overview": overview,
        "site": overview.site,
        "connection": overview.connection,
        "page_url": reverse("site-detail", args=[pk]),
        "test_url": reverse("site-test", args=[pk]),
        "try_url": reverse("site-try-out", args=[pk]),
    }


def _saved(request: WebRequest, form: SiteForm, *, page: str) -> HttpResponse:
    """Save what a form says and test it, unless that is not wanted."""
    if form.is_valid():
        save = (
            actions.site_save
            if request.POST.get("do") == "save"
            else actions.site_connect
        )
        try:
            site = save(by=request.user, site=form.instance)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, f"{site.name} is saved.")
            if guide_for(request.user) is not None:
                return redirect("welcome")
            return redirect("site-detail", site.pk)
    row = form.instance
    secret_name = own_variable("ONTAP_PASSWORD", key=row.name) if row.pk else ""
    context = {"form": form, "site": row, "secret_name": secret_name}
    return render(request, page, context, status=form.http_code)
