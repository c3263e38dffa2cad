"""Pages of the logs of Perforce servers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import F
from django.forms import model_to_dict
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.csrf import csrf_exempt, csrf_protect
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.accounts.models import User
from provisioner.lib.tables import csv_lines
from provisioner.server_log import actions
from provisioner.server_log.forms import (
    LapsesForm,
    LockWaitsForm,
    LogUploadForm,
    PollingForm,
    ServerLoadForm,
    ServerLocksForm,
    ServerLogForm,
)
from provisioner.server_log.lists import COMMANDS, MESSAGES, TABLE_USES
from provisioner.server_log.lock_waits import BLOCKED, locks_of, row_of
from provisioner.server_log.lock_waits import lock_waits as find_lock_waits
from provisioner.server_log.overviews import (
    Asked,
    LockShare,
    lapse_chart,
    load_chart,
    lock_shares,
    log_overviews,
    polling_shares,
    shares,
)
from provisioner.server_log.pictures import jams_of
from provisioner.server_log.polling import POLLED, polling
from provisioner.server_log.queries import (
    commands_visible_to,
    log_of,
    uploads_visible_to,
)
from provisioner.server_log.receiving import LogReceiver, largest
from provisioner.server_log.samples import MOST_SLOW, STRETCHES, lapses
from provisioner.server_log.tallies import (
    LOCKS_TALLIED,
    TALLIED,
    LockBy,
    lock_tallies,
    tallies,
    worst_lock_tallies,
)
from provisioner.sites.models import PerforceServer
from provisioner.web.http import WebRequest, administrators_only, csv_answer, posted
from provisioner.web.lists.answers import list_page
from provisioner.web.posting import done, form_page, require_safe_or_POST

command_list = administrators_only(list_page(COMMANDS, "server_log/commands.html"))
table_use_list = administrators_only(list_page(TABLE_USES, "server_log/uses.html"))
message_list = administrators_only(list_page(MESSAGES, "server_log/messages.html"))

MOST_SHOWN = 15
MOST_LOCKS_SHOWN = 200


@require_safe
@vary_on_headers("HX-Request")
@administrators_only
def server_load(request: WebRequest) -> HttpResponseBase:
    """Show who took how much of the servers, and who waited for whose locks.

    The locks come once the page is there, or with `more`.
    """
    form = ServerLoadForm(request.GET)
    criteria = form.criteria()
    where = {name: criteria[name] for name in ("period", "server", "whose")}
    if request.GET.get("as") == "csv":
        rows = (asdict(tally).values() for tally in tallies(request.user, **criteria))
        return csv_answer("server-load", csv_lines(TALLIED, rows), to=request.user)
    asked = Asked(**where)
    shows_locks = "more" in request.GET
    locks = _load_locks(request.user, asked, where) if shows_locks else {}
    if request.htmx and shows_locks:
        return render(request, "server_log/_load_locks.html", locks)
    found = tallies(request.user, **criteria, most=MOST_SHOWN)
    context = {
        "form": form,
        "asked": asked,
        "chart": load_chart(request.user, asked),
        "shares": shares(found, asked, by=criteria["by"]),
        "shows_locks": shows_locks,
        **locks,
    }
    return render(request, "server_log/load.html", context)


def _load_locks(
    reader: User, asked: Asked, where: dict[str, Any]
) -> dict[str, list[LockShare]]:
    tables = lock_tallies(
        reader, **where, by=LockBy.TABLE, order="wait_ms", most=MOST_SHOWN
    )
    culprits, victims = worst_lock_tallies(
        reader, **where, orders=("write_held_ms", "wait_ms"), most=MOST_SHOWN
    )
    return {
        "tables": lock_shares(tables, asked),
        "culprits": lock_shares(culprits, asked),
        "victims": lock_shares(victims, asked),
    }


@require_safe
@administrators_only
def server_locks(request: WebRequest) -> HttpResponseBase:
    """Show who held locks of tables and who waited for them, in all columns."""
    form = ServerLocksForm(request.GET)
    criteria = form.criteria()
    if request.GET.get("as") == "csv":
        found = lock_tallies(request.user, **criteria)
        lines = csv_lines(LOCKS_TALLIED, (asdict(tally).values() for tally in found))
        return csv_answer("server-locks", lines, to=request.user)
    where = {name: criteria[name] for name in ("period", "server", "whose")}
    asked = Asked(**where)
    found = lock_tallies(request.user, **criteria, most=MOST_LOCKS_SHOWN)
    context = {"form": form, "asked": asked, "locks": lock_shares(found, asked)}
    return render(request, "server_log/locks.html", context)


@require_safe
@administrators_only
def server_lapses(request: WebRequest) -> HttpResponse:
    """Show the slowest commands of a time, and a sample of the others."""
    form = LapsesForm(request.GET)
    criteria = form.criteria()
    where = {name: criteria[name] for name in ("period", "server", "whose")}
    asked = Asked(**where)
    found = lapses(request.user, **criteria)
    names = {name: criteria.get(name, "") for name in ("command", "user")}
    context = {
        "form": form,
        "asked": asked,
        "lapses": found,
        "most": MOST_SLOW,
        "stretches": STRETCHES,
        "rows": asked.commands(**names),
        "chart": lapse_chart(found, asked),
    }
    return render(request, "server_log/lapses.html", context)


@require_safe
@administrators_only
def server_polling(request: WebRequest) -> HttpResponseBase:
    """Show which programs ask the same again and again."""
    form = PollingForm(request.GET)
    criteria = form.criteria()
    if request.GET.get("as") == "csv":
        rows = (
            [getattr(each, name) for name in POLLED]
            for each in polling(request.user, **criteria)
        )
        return csv_answer("server-polling", csv_lines(POLLED, rows), to=request.user)
    where = {name: criteria[name] for name in ("period", "server", "whose")}
    asked = Asked(**where)
    found = polling(request.user, **criteria, most=MOST_LOCKS_SHOWN)
    context = {"form": form, "asked": asked, "shares": polling_shares(found, asked)}
    return render(request, "server_log/polling.html", context)


@require_safe
@administrators_only
def lock_waits(request: WebRequest) -> HttpResponseBase:
    """Show who waited for whose locks at a server, and draw it."""
    newest = F("log__read_at").desc(nulls_last=True)
    first = PerforceServer.objects.order_by(newest, "name").first()
    form = LockWaitsForm(
        request.GET if "server" in request.GET else None, initial={"server": first}
    )
    asked = form.criteria() if form.is_valid() else {}
    server = asked.pop("server", None) or first
    found = find_lock_waits(request.user, server=server, **asked) if server else None
    if found is not None and request.GET.get("as") == "csv":
        lines = csv_lines(BLOCKED, (row_of(each) for each in found.blocked))
        return csv_answer("server-lock-waits", lines, to=request.user)
    context = {
        "form": form,
        "server": server,
        "waits": found,
        "jams": jams_of(found) if found else [],
    }
    return render(request, "server_log/waits.html", context)


@require_safe
@administrators_only
def command_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a command, its long locks, and for whom it waited."""
    command = get_object_or_404(commands_visible_to(request.user), pk=pk)
    context = {"command": command, "locks": locks_of(command)}
    return render(request, "server_log/command.html", context)


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


@csrf_exempt  # which would read the file before anybody says where it goes
@require_safe_or_POST
@administrators_only
def server_log_upload(request: WebRequest, pk: int) -> HttpResponseBase:
    """Receive a log that somebody uploads."""
    server = get_object_or_404(PerforceServer, pk=pk)
    receiver = LogReceiver(request)
    request.upload_handlers = [receiver]
    try:
        return _upload_page(request, server, receiver)
    finally:
        receiver.discard()


@csrf_protect
def _upload_page(
    request: WebRequest, server: PerforceServer, receiver: LogReceiver
) -> HttpResponse:
    form = LogUploadForm(posted(request), request.FILES or None)
    if receiver.refusal is not None:
        form.errors.clear()  # that there is no file
        form.refuse(receiver.refusal)
    elif form.tried(actions.server_log_upload, by=request.user, server=server):
        said = "Uploaded. A worker reads it."
        return done(request, said, "server-log-upload", server.pk)
    context = {
        "server": server,
        "most": largest(),
        "uploads": uploads_visible_to(request.user).filter(server=server)[:MOST_SHOWN],
    }
    return form_page(request, "server_log/upload.html", form, **context)
