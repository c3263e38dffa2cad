"""Pages for administrators: overview, savings, everybody's workspaces."""

from __future__ import annotations

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.html import format_html
from django.views.decorators.http import require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.dashboard.queries import Installation, installation
from provisioner.dashboard.savings import COLUMNS, savings, totals
from provisioner.dashboard.spans import USUAL, SpanForm, span_links, span_of
from provisioner.lib.tables import csv_lines
from provisioner.web.http import WebRequest, administrators_only, csv_answer
from provisioner.web.notices import Level, Notice


@require_safe
@administrators_only
@vary_on_headers("HX-Request")
def overview(request: WebRequest) -> HttpResponse:
    """Show the overview: what is wrong, what will be full, how fast, what it saves.

    Charts and tables come once the page is there. Where the address asks for them, or
    for a period, they are a page by themselves.
    """
    form = SpanForm(request.GET)
    shown = installation(request.user, span_of(form))
    chosen = form.cleaned_data.get("range") or USUAL
    context: dict[str, object] = {
        "installation": shown,
        "span_form": form,
        "span_links": span_links(request.GET, chosen),
    }
    if request.htmx:
        return render(request, "dashboard/_more.html", context)
    if request.GET:
        return render(request, "dashboard/charts.html", context)
    context["notices"] = _notices(shown)
    return render(request, "dashboard/overview.html", context)


@require_safe
@administrators_only
def savings_list(request: WebRequest) -> HttpResponseBase:
    """Show what clones save, by month and team, or send it as CSV.

    Raises: TooManyDownloads.
    """
    rows = savings(request.user)
    if request.GET.get("as") == "csv":
        lines = csv_lines(COLUMNS, (row.cells for row in rows))
        return csv_answer("savings", lines, to=request.user)
    months = totals(rows)
    return render(request, "dashboard/savings.html", {"months": months})


def _notices(shown: Installation) -> list[Notice]:
    """Return the problem that queues have no worker, if there is one."""
    if not shown.workers:
        waiting = f" {_jobs(shown.waiting)}." if shown.waiting else ""
        return [
            Notice(
                level=Level.ERROR,
                title="No worker is running",
                texts=(
                    format_html(
                        "Requests wait until you start one with "
                        "<code>make worker</code>.{}",
                        waiting,
                    ),
                ),
            )
        ]
    return [
        Notice(
            level=Level.WARNING,
            texts=(
                f"{_jobs(queue.waiting)} in the queue “{queue.name}”, "
                "which no worker serves.",
            ),
        )
        for queue in shown.unserved
    ]


def _jobs(number: int) -> str:
    return f"{number:,} {'job waits' if number == 1 else 'jobs wait'}"
