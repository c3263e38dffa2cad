"""What looks abandoned, for those who run the place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe
from django.views.decorators.vary import vary_on_headers

from provisioner.lib.tables import csv_lines
from provisioner.web.filter_forms import AbandonedFilterForm
from provisioner.web.http import (
    WebRequest,
    administrators_only,
    csv_answer,
    digest,
    posted,
)
from provisioner.web.lease_forms import ChosenForm
from provisioner.workspaces import abandoned, actions
from provisioner.workspaces.abandoned import AbandonedWorkspace
from provisioner.workspaces.actions.abandoned import MOST_AT_A_TIME, Outcome

ABANDONED_ON_A_PAGE = 50


@require_http_methods(["GET", "HEAD", "POST"])
@administrators_only
def abandoned_list(request: WebRequest) -> HttpResponseBase:
    """Show what looks abandoned and why; ask owners, or go on to retiring it."""
    filters = AbandonedFilterForm(request.GET)
    found = abandoned.abandoned_workspaces(request.user, **filters.criteria())
    shown = _sorted(found.workspaces, filters.cleaned_data.get("sort", ""))
    if request.GET.get("as") == "csv":
        return csv_answer("abandoned", _as_csv(shown))
    page = Paginator(shown, ABANDONED_ON_A_PAGE).get_page(request.GET.get("page"))
    form = ChosenForm(
        posted(request),
        pks=[one.workspace.pk for one in found.workspaces],
        verbs=("notify", "preview", "retire"),
    )
    if form.is_valid():
        chosen = form.cleaned_data["workspace"]
        if form.cleaned_data["do"] == "notify":
            asked = actions.abandoned_notify(by=request.user, pks=chosen)
            _say_whom(request, asked)
            return redirect("abandoned-list")
        if form.cleaned_data["do"] == "preview":
            outcomes = actions.abandoned_retire(
                by=request.user, pks=chosen, preview=True
            )
            return render(request, "abandoned/retire.html", _shown(outcomes))
        outcomes = actions.abandoned_retire(by=request.user, pks=chosen)
        pks = ",".join(str(outcome.workspace.pk) for outcome in outcomes)
        return redirect(f"{reverse('abandoned-progress')}?workspaces={pks}")
    return render(
        request,
        "abandoned/list.html",
        {
            "form": form,
            "filters": filters,
            "found": found,
            "page": page,
            "progress": found.progress,
            "pks": _named(found.progress),
            "all_chosen": request.GET.get("choose") == "all",
            "chosen": {
                int(pk) for pk in request.POST.getlist("workspace") if pk.isdecimal()
            },
        },
        status=form.http_code,
    )


def _sorted(
    found: Sequence[AbandonedWorkspace], sort: str
) -> Sequence[AbandonedWorkspace]:
    """Return what was found in an order; it comes the longest idle first."""
    keys: dict[str, Callable[[AbandonedWorkspace], Any]] = {
        "-unique_bytes": lambda one: -(one.frees_bytes or 0),
        "name": lambda one: one.workspace.name,
        "owner": lambda one: one.workspace.owner.username,
    }
    return sorted(found, key=keys[sort]) if sort in keys else found


def _as_csv(found: Sequence[AbandonedWorkspace]) -> Iterator[str]:
    columns = (
        *("id", "name", "owner", "template", "idle_since", "unique_bytes"),
        *("expires_at", "kept_because", "notified_at", "why"),
    )
    return csv_lines(
        columns,
        (
            (
                *(one.workspace.pk, one.workspace.name, one.workspace.owner.username),
                *(one.workspace.template.name, one.abandonment.idle_since),
                *(one.frees_bytes, one.deadline.ends_at, one.deadline.kept_because),
                *(one.notified_at, one.abandonment.sentence),
            )
            for one in found
        ),
    )


def _named(progress: abandoned.RetirementProgress) -> str:
    lines = progress.lines[:MOST_AT_A_TIME]
    return ",".join(str(line.workspace.pk) for line in lines)


def _say_whom(request: WebRequest, outcomes: list[Outcome]) -> None:
    asked = [outcome for outcome in outcomes if outcome.word == "notify"]
    messages.success(
        request,
        "1 owner is asked." if len(asked) == 1 else f"{len(asked)} owners are asked.",
    )
    for outcome in outcomes:
        is_deaf = outcome.word == "notify" and not outcome.workspace.owner.email
        if outcome.word == "refused" or is_deaf:
            messages.warning(request, f"{outcome.workspace}: {outcome.sentence}")


def _shown(outcomes: list[Outcome]) -> dict[str, object]:
    return {
        "outcomes": outcomes,
        "count": sum(outcome.word == "retire" for outcome in outcomes),
    }


@require_safe
@administrators_only
@vary_on_headers("HX-Request")
def abandoned_progress(request: WebRequest) -> HttpResponse:
    """Show how far those are that were retired together, until each is away."""
    named = request.GET.get("workspaces", "").split(",")[:MOST_AT_A_TIME]
    pks = [int(pk) for pk in named if pk.isascii() and pk.isdecimal() and len(pk) < 19]
    progress = abandoned.retirement_progress(request.user, pks=pks)
    context: dict[str, object] = {
        "progress": progress,
        "pks": ",".join(map(str, pks)),
    }
    if not request.htmx:
        return render(request, "abandoned/progress.html", context)
    context["is_news"] = request.GET.get("said") != digest(progress.announcement)
    return render(request, "abandoned/_progress.html", context)
