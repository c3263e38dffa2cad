"""Pages of the logs of Perforce servers."""

from __future__ import annotations

from django.forms import model_to_dict
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from provisioner.server_log import actions
from provisioner.server_log.forms import ServerLogForm
from provisioner.server_log.lists import COMMANDS
from provisioner.server_log.overviews import log_overviews
from provisioner.server_log.queries import log_of
from provisioner.sites.models import PerforceServer
from provisioner.web.http import WebRequest, administrators_only, posted
from provisioner.web.lists.answers import list_page
from provisioner.web.posting import done, form_page, require_safe_or_POST

command_list = administrators_only(list_page(COMMANDS, "server_log/commands.html"))


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
