"""Perforce servers: how they are, connecting and testing one."""

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
from provisioner.web.site_forms import PerforceServerForm
from provisioner.workspaces import actions
from provisioner.workspaces.connections_overview import (
    find_server_overview,
    own_variable,
)
from provisioner.workspaces.errors import ActionRefused
from provisioner.workspaces.guide import guide_for
from provisioner.workspaces.models import PerforceServer


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def perforce_server_create(request: WebRequest) -> HttpResponse:
    """Connect a Perforce server."""
    return _saved(
        request,
        PerforceServerForm(posted(request)),
        page="perforce_servers/create.html",
    )


@require_safe
@vary_on_headers("HX-Request")
@administrators_only
def perforce_server_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a server and what was found about the way to it; to htmx that alone."""
    context = _context(request, pk)
    if request.htmx:
        return connection_part(request, context)
    return render(request, "perforce_servers/detail.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def perforce_server_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change a Perforce server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    form = PerforceServerForm(posted(request), instance=server)
    return _saved(request, form, page="perforce_servers/edit.html")


@require_POST
@vary_on_headers("HX-Request")
@administrators_only
def perforce_server_test(request: WebRequest, pk: int) -> HttpResponse:
    """Test the way to a Perforce server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    actions.perforce_server_test(by=request.user, server=server)
    if request.htmx:
        return connection_part(request, _context(request, pk))
    if "from_guide" in request.POST:
        return redirect("welcome")
    return redirect("perforce-server-detail", pk)


def _context(request: WebRequest, pk: int) -> dict[str, object]:
    overview = find_server_overview(request.user, pk=pk)
    if overview is None:
        raise Http404
    return {
        "overview": overview,
        "server": overview.server,
        "connection": overview.connection,
        "page_url": reverse("perforce-server-detail", args=[pk]),
        "test_url": reverse("perforce-server-test", args=[pk]),
    }


def _saved(request: WebRequest, form: PerforceServerForm, *, page: str) -> HttpResponse:
    """Save what a form says and test it, unless that is not wanted."""
    if form.is_valid():
        save = (
            actions.perforce_server_save
            if request.POST.get("do") == "save"
            else actions.perforce_server_connect
        )
        try:
            server = save(by=request.user, server=form.instance)
        except ActionRefused as refusal:
            form.refuse(refusal)
        else:
            messages.success(request, f"{server.name} is saved.")
            if guide_for(request.user) is not None:
                return redirect("welcome")
            return redirect("perforce-server-detail", server.pk)
    row = form.instance
    secret_name = own_variable("P4PASSWD", key=row.name) if row.pk else ""
    context = {"form": form, "server": row, "secret_name": secret_name}
    return render(request, page, context, status=form.http_code)
