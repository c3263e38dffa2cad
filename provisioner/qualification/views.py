"""Pages of runs: all, one, two compared, and a report to print."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.engine.overviews import UNDER_WAY, under_way
from provisioner.engine.queries import latest_operations
from provisioner.lib.refusals import InvalidRequest
from provisioner.qualification.actions import baselines, running
from provisioner.qualification.forms import BaselineForm, CompareForm, RunForm
from provisioner.qualification.lists import RUNS
from provisioner.qualification.models import QualificationRun, RunLog
from provisioner.qualification.profiles import PROFILES
from provisioner.qualification.queries import (
    may_measure,
    runs_visible_to,
    sandboxes_to_measure,
    servers_to_measure,
    templates_to_measure,
)
from provisioner.qualification.reports import (
    compared,
    comparisons_of,
    csv_lines,
    figure_lines,
    not_comparable,
    phase_lines,
    published_beside,
    unlike,
    waiting_text,
)
from provisioner.sandboxes.models import Sandbox
from provisioner.sandboxes.overviews import limits_text, missing_for_sandboxes
from provisioner.sandboxes.queries import policy_of
from provisioner.web.http import WebRequest, csv_answer, polled, posted
from provisioner.web.lists.answers import list_answer
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.posting import acted, form_page, require_safe_or_POST

# What a link to the form may fill in.
PREFILLED = ("sandbox", "server", "profile", "note")


@require_safe
def run_list(request: WebRequest) -> HttpResponseBase:
    """List the runs that the reader may see."""
    context = {"may_measure": may_measure(request.user)}
    return list_answer(request, RUNS, "qualification/list.html", context)


@require_safe_or_POST
def run_create(request: WebRequest) -> HttpResponse:
    """Choose a profile and what to measure with it."""
    user = request.user
    known = {name: request.GET[name] for name in PREFILLED if name in request.GET}
    form = RunForm(posted(request), by=user, initial=known)
    if run := form.tried(running.run_start, by=user):
        return redirect("qualification-detail", run.pk)
    targets = (sandboxes_to_measure, servers_to_measure, templates_to_measure)
    has_target = any(find(user).exists() for find in targets)
    context = {"profiles": PROFILES, "has_target": has_target}
    return form_page(request, "qualification/create.html", form, **context)


@require_safe_or_POST
def baseline_create(request: WebRequest) -> HttpResponse:
    """Request a sandbox that is measured once it is ready, and retired then."""
    policy = policy_of(request.user)
    longest = policy.longest_hours if policy is not None else 1
    form = BaselineForm(posted(request), longest_hours=longest)
    if run := form.tried(baselines.baseline_start, by=request.user):
        return redirect("qualification-detail", run.pk)
    context = {
        "may_create": policy is not None,
        "limits": limits_text(request.user, policy) if policy is not None else "",
        "missing": missing_for_sandboxes(),
    }
    return form_page(request, "qualification/baseline.html", form, **context)


@require_safe
def run_detail(request: WebRequest, pk: int) -> HttpResponse:
    """Show a run: its figures by repeat, its parameters and its hosts."""
    run = _run(request, pk)
    operations = latest_operations(request.user, run.subject_id)
    context = {
        **_of_run(run),
        "operations": operations,
        "progress": under_way(operations),
        "poll": reverse("qualification-progress", args=[pk]),
        "waiting": waiting_text(run),
        "is_under_way": run.is_under_way,
        "notices": list(_notices(run)),
        "log": RunLog.objects.filter(run=run).defer("data").first(),
        "others": comparisons_of(request.user, run),
        "compare_form": CompareForm(initial={"first": run.pk}),
    }
    return render(request, "qualification/detail.html", context)


def _of_run(run: QualificationRun) -> dict[str, object]:
    return {
        "run": run,
        "profile": run.described,
        "figures": figure_lines(run),
        "phases": phase_lines(run),
        "repeats": range(1, run.repeats + 1),
        "said": run.summary.splitlines(),
        "rounds": run.host_rounds.filter(repeat__gt=0),
    }


@require_safe
def run_report(request: WebRequest, pk: int) -> HttpResponse:
    """Put a run beside what was published, on a page to print."""
    run = _run(request, pk)
    context = {
        **_of_run(run),
        "published": published_beside(run),
        "differences": not_comparable(run),
    }
    return render(request, "qualification/report.html", context)


@require_safe
@vary_on_headers("HX-Request")
def run_progress(request: WebRequest, pk: int) -> HttpResponse:
    """Give htmx the progress of a run, and the whole page once it ended."""
    run = _run(request, pk)
    if not request.htmx:
        return redirect("qualification-detail", pk)
    if waiting := waiting_text(run):
        context = {"waiting": waiting, "poll": request.path}
        return render(request, "qualification/_waiting.html", context)
    has_waited = not request.GET.get("said")
    operations = latest_operations(request.user, run.subject_id)
    return polled(request, UNDER_WAY, None if has_waited else under_way(operations))


@require_safe
def run_csv(request: WebRequest, pk: int) -> HttpResponseBase:
    """Hand out the figures of a run."""
    run = _run(request, pk)
    return csv_answer(f"run-{run.pk}", csv_lines(run), to=request.user)


@require_safe
def run_log(request: WebRequest, pk: int) -> HttpResponse:
    """Hand out the server's log of a run, as gzip has compressed it."""
    log = get_object_or_404(RunLog, run=_run(request, pk))
    name = f"cloneyard-run-{pk}.log.gz"
    return HttpResponse(
        bytes(log.data),
        content_type="application/gzip",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@require_POST
def run_retry(request: WebRequest, pk: int) -> HttpResponse:
    """Go on with a run that failed."""
    act = partial(running.run_retry, by=request.user, run=_run(request, pk))
    return acted(request, act, "qualification-detail", pk)


@require_safe
def run_compare(request: WebRequest) -> HttpResponse:
    """Compare two runs of one profile."""
    form = CompareForm(request.GET or None)
    context: dict[str, object] = {}
    if form.is_valid():
        try:
            first, second = form.runs(request.user)
        except InvalidRequest as refusal:
            form.refuse(refusal)
        else:
            context = {
                "first": first,
                "second": second,
                "measures": compared(first, second),
                "unlike": unlike(first, second),
            }
    return form_page(request, "qualification/compare.html", form, **context)


def _run(request: WebRequest, pk: int) -> QualificationRun:
    return get_object_or_404(runs_visible_to(request.user), pk=pk)


def _notices(run: QualificationRun) -> Iterator[Notice]:
    if run.state != QualificationRun.State.FAILED:
        return
    kept = "Repeats that are complete are kept."
    url = reverse("qualification-retry", args=[run.pk])
    actions: tuple[Action, ...] = (Action(label="Retry", url=url, is_post=True),)
    if run.sandbox is not None and run.sandbox.state == Sandbox.State.RETIRED:
        kept = f"{kept} The sandbox {run.sandbox.name} is retired: measure another one."
        actions = ()
    elif run.sandbox is not None and run.begins_with_its_sandbox:
        kept = "Once its sandbox is ready, the run begins by itself."
        url = reverse("sandbox-detail", args=[run.sandbox.pk])
        actions = (Action(label="Open its sandbox", url=url),)
    yield Notice(
        level=Level.ERROR,
        title="The run ended early",
        texts=(run.status_message, kept),
        actions=actions,
        is_urgent=True,
    )
