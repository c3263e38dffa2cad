"""The page of a Perforce server; connecting, changing and testing one."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.sites.actions import sites as site_actions
from provisioner.sites.actions.sites import (
    perforce_server_connect,
    perforce_server_save,
)
from provisioner.sites.forms import PerforceServerForm
from provisioner.sites.models import PerforceServer
from provisioner.sites.queries import find_server_overview
from provisioner.sites.slots_overview import pause_notices, slots_of
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
def perforce_server_create(request: WebRequest) -> HttpResponse:
    """Connect a Perforce server."""
    return _saved(
        request,
        PerforceServerForm(posted(request)),
        page="sites/perforce_servers/create.html",
    )


@require_safe
@vary_on_headers("HX-Request")
@administrators_only
def perforce_server_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a server: its slots, and the latest test of its connection.

    htmx gets only the latter.
    """
    context = _context(request, pk)
    if request.htmx:
        return connection_part(request, context)
    server = context["server"]
    slots, watch = slots_of(server), getattr(server, "watch", None)
    context |= {
        "slots": slots,
        "notices": pause_notices(slots),
        "watch": watch,
        "actions": _actions(server, is_refresh_paused=bool(watch and watch.is_paused)),
    }
    return render(request, "sites/perforce_servers/detail.html", context)


@require_safe_or_POST
@administrators_only
def perforce_server_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change a Perforce server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    form = PerforceServerForm(posted(request), instance=server)
    return _saved(request, form, page="sites/perforce_servers/edit.html")


@require_POST
@vary_on_headers("HX-Request")
@administrators_only
def perforce_server_test(request: WebRequest, pk: int) -> HttpResponse:
    """Test the connection to a Perforce server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    site_actions.perforce_server_test(by=request.user, server=server)
    return asked(request, _context(request, pk))


def _actions(server: PerforceServer, *, is_refresh_paused: bool) -> list[Action]:
    verb = "resume" if is_refresh_paused else "pause"
    return [
        Action(label="Edit", url=reverse("perforce-server-edit", args=[server.pk])),
        Action(
            label=f"{verb.capitalize()} the refresh of its templates",
            url=reverse("refresh-pause"),
            is_post=True,
            sends={"server": str(server.pk), "do": verb},
        ),
    ]


def _context(request: WebRequest, pk: int) -> dict[str, Any]:
    overview = find_server_overview(request.user, pk=pk)
    if overview is None:
        raise Http404
    context = connection_context(overview, kind="perforce-server", pk=pk)
    return {**context, "server": overview.server}


def _saved(request: WebRequest, form: PerforceServerForm, *, page: str) -> HttpResponse:
    def save() -> PerforceServer:
        act = (
            perforce_server_connect
            if is_to_be_tested(request)
            else perforce_server_save
        )
        return act(by=request.user, server=form.instance)

    return saved(
        request, form, save, kind="perforce-server", page=page, variable="P4PASSWD"
    )
