"""Pages of the logs of Perforce servers."""

from __future__ import annotations

from dataclasses import asdict

from django.forms import model_to_dict
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from provisioner.lib.tables import csv_lines
from provisioner.server_log import actions
from provisioner.server_log.forms import ServerLoadForm, ServerLogForm
from provisioner.server_log.lists import COMMANDS
from provisioner.server_log.overviews import load_chart, log_overviews, shares
from provisioner.server_log.queries import log_of
from provisioner.server_log.tallies import TALLIED, lock_tallies, tallies
from provisioner.sites.models import PerforceServer
from provisioner.web.http import WebRequest, administrators_only, csv_answer, posted
from provisioner.web.lists.answers import list_page
from provisioner.web.posting import done, form_page, require_safe_or_POST

command_list = administrators_only(list_page(COMMANDS, "server_log/commands.html"))


MOST_SHOWN = 15


@require_safe
@administrators_only
def server_load(request: WebRequest) -> HttpResponseBase:
    """Show who took how much of the servers, and who waited for whose locks."""
    form = ServerLoadForm(request.GET)
    asked = form.criteria()
    where = {name: asked[name] for name in ("days", "server")}
    if request.GET.get("as") == "csv":
        rows = (asdict(tally).values() for tally in tallies(request.user, **asked))
        return csv_answer("server-load", csv_lines(TALLIED, rows), to=request.user)
    found = tallies(request.user, **asked, most=MOST_SHOWN)
    context = {
        "form": form,
        "chart": load_chart(request.user, **where),
        "shares": shares(found, by=asked["by"], **where),
        "culprits": lock_tallies(request.user, **where, most=MOST_SHOWN),
        "victims": lock_tallies(
            request.user, **where, order="wait_ms", most=MOST_SHOWN
        ),
    }
    return render(request, "server_log/load.html", context)


@require_safe
@administrators_only
def server_log_list(request: WebRequest) -> HttpResponse:
    """Show how far the log of each server was read."""
    return render(request, "server_log/logs.html", {"logs": log_overviews()})


@require_safe_or_POST
@administrators_only
def server_log_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Say which file is the log of a server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    initial = model_to_dict(log_of(server), ServerLogForm.base_fields)
    form = ServerLogForm(posted(request), initial=initial)
    if form.tried(actions.server_log_save, by=request.user, server=server):
        return done(request, "Saved.", "server-log-list")
    return form_page(request, "server_log/edit.html", form, server=server)
