"""Pages of probes, moments and comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_POST, require_safe

from provisioner.lib import clocks
from provisioner.lib.tables import Cell, csv_lines
from provisioner.probes import actions
from provisioner.probes.commands import ALLOWED
from provisioner.probes.comparing import Report, compare_periods
from provisioner.probes.forms import (
    ComparisonForm,
    MomentForm,
    ProbePlanForm,
    ReportMailForm,
)
from provisioner.probes.lists import ROUNDS, TIMES
from provisioner.probes.models import Moment
from provisioner.probes.overviews import probe_overviews
from provisioner.probes.queries import (
    moments_visible_to,
    plan_of,
    report_mails_visible_to,
)
from provisioner.sites.models import PerforceServer
from provisioner.web.http import (
    WebRequest,
    administrators_only,
    csv_answer,
    posted,
)
from provisioner.web.lists.answers import list_answer
from provisioner.web.posting import acted, done, form_page, require_safe_or_POST


@require_safe
@administrators_only
def probe_list(request: WebRequest) -> HttpResponseBase:
    """Show each server's weeks and charts, above every single time."""
    context = {"probes": probe_overviews(now=clocks.database_now())}
    return list_answer(request, TIMES, "probes/times.html", context)


@require_safe
@administrators_only
def probe_rounds(request: WebRequest) -> HttpResponseBase:
    """List each round of a probe, and each gap with its reason."""
    return list_answer(request, ROUNDS, "probes/rounds.html", {})


@require_safe_or_POST
@administrators_only
def probe_plan_edit(request: WebRequest, pk: int) -> HttpResponse:
    """Change the commands that are timed at a server."""
    server = get_object_or_404(PerforceServer, pk=pk)
    plan = plan_of(server)
    initial = {"is_on": plan.is_on, "commands": plan.commands}
    form = ProbePlanForm(posted(request), initial=initial)
    if form.tried(actions.probe_plan_save, by=request.user, server=server):
        return done(request, "Saved.", "probe-list")
    context = {"server": server, "allowed": sorted(ALLOWED)}
    return form_page(request, "probes/plan.html", form, **context)


@require_safe_or_POST
@administrators_only
def moment_list(request: WebRequest) -> HttpResponse:
    """List what was changed at servers, and mark more."""
    form = MomentForm(posted(request))
    if form.tried(actions.moment_mark, by=request.user):
        return done(request, "Marked.", "moment-list")
    context = {"moments": moments_visible_to(request.user)}
    return form_page(request, "probes/moments.html", form, **context)


@require_POST
@administrators_only
def moment_delete(request: WebRequest, pk: int) -> HttpResponse:
    """Delete a mark."""
    moment = get_object_or_404(Moment.objects.select_related("server"), pk=pk)
    act = partial(actions.moment_delete, by=request.user, moment=moment)
    return acted(request, act, "moment-list", said="Deleted.")


@require_safe_or_POST
@administrators_only
def comparison(request: WebRequest) -> HttpResponseBase:
    """Compare two periods: as a page to print, as CSV, or mailed to people."""
    asked = {*request.GET} - {"as"}
    form = ComparisonForm(request.GET if asked else None)
    report = form.tried(compare_periods, by=request.user)
    if report is not None and request.GET.get("as") == "csv":
        lines = csv_lines(REPORT_COLUMNS, _lines(report))
        return csv_answer("comparison", lines, to=request.user)
    mail_form = ReportMailForm(posted(request))
    if report is not None:
        mails = mail_form.tried(actions.report_mail, by=request.user, report=report)
        if mails:
            said = "The mails are sent within minutes. What became of them is below."
            return done(request, said, request.get_full_path())
    context = {
        "report": report,
        "query": request.GET.urlencode(),
        "mail_form": mail_form,
        "mails": report_mails_visible_to(request.user)[:MAILS_SHOWN],
    }
    status = max(form.http_code, mail_form.http_code)
    return render(
        request, "probes/comparison.html", {"form": form, **context}, status=status
    )


MAILS_SHOWN = 10
_STATISTICS = ("number", "days", "average", "median", "p95", "maximum", "minimum")
REPORT_COLUMNS = (
    *("server", "measure", "unit"),
    *(f"{when}_{name}" for when in ("before", "after") for name in _STATISTICS),
    *("variance", "adjusted", "interval_low", "interval_high", "verdict", "reason"),
)


def _lines(report: Report) -> Iterator[list[Cell]]:
    for measure in report.measures:
        found = measure.comparison
        low, high = found.interval or (None, None)
        yield [
            *(report.server.name, measure.name, report.source.unit),
            *(
                getattr(summary, name)
                for summary in (found.before, found.after)
                for name in _STATISTICS
            ),
            *(found.share, found.adjusted, low, high),
            *(str(found.outcome), found.reason),
        ]
