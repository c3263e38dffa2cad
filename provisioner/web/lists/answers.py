"""The one view behind all lists: the page, the CSV download, and acts on many rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.html import format_html, format_html_join

from provisioner.lib.refusals import InvalidRequest
from provisioner.web.bulk import MOST_AT_A_TIME, RowOutcome
from provisioner.web.http import WebRequest, csv_answer, digest
from provisioner.web.lists.acts import Act, Row
from provisioner.web.lists.listing import Listing, Look, address_without

REFUSALS_SHOWN = 20


def list_answer(
    request: WebRequest,
    listing: Listing[Any],
    template: str,
    context: Mapping[str, Any] | None = None,
) -> HttpResponseBase:
    """Answer with a list as a page or as CSV, or act on its rows.

    A POST names rows and what to do to them. The first is answered with a preview, the
    second does it.
    """
    look = Look(listing, request)
    if request.method == "POST":
        return _acted(request, look, template, context)
    if request.GET.get("as") == "csv":
        return csv_answer(listing.name, look.as_csv())
    return render(request, template, {**(context or {}), "listing": look})


def _acted(
    request: WebRequest,
    look: Look[Any],
    template: str,
    context: Mapping[str, Any] | None,
) -> HttpResponse:
    asked = request.POST.get("do")
    wanted = next((act for act in look.acts if act.name == asked), None)
    rows = _chosen(request, look)
    try:
        if wanted is None:
            raise InvalidRequest("Choose an action.")
        return _previewed_or_done(request, look, wanted(by=request.user), rows)
    except InvalidRequest as refusal:
        look.error = refusal.sentence
    shown = {**(context or {}), "listing": look}
    return render(request, template, shown, status=422)


def _chosen(request: WebRequest, look: Look[Row]) -> list[Row]:
    """Return the chosen rows: all that match, or those that were ticked."""
    rows = look.rows
    if not request.POST.get("every"):
        keys = _keys(request)[: MOST_AT_A_TIME + 1]
        rows = look.listing.find(look.user, keys)
        rows = look.listing.ordered(rows, look.sort)
    return list(rows[: MOST_AT_A_TIME + 1])


def _keys(request: WebRequest) -> list[str]:
    """Return the ticked keys; a further preview includes those that were left out."""
    keys = request.POST.getlist("chosen")
    if request.POST.get("step") != "sure":
        keys += request.POST.getlist("left_out")
    return list(dict.fromkeys(keys))


def _previewed_or_done(
    request: WebRequest, look: Look[Row], act: Act[Row], rows: Sequence[Row]
) -> HttpResponse:
    step = request.POST.get("step")
    form = act.form(request.POST if step else None)
    told = form.cleaned_data if form.is_valid() else _usual(form, act)
    is_sure = step == "sure" and form.is_valid() and _was_seen(request, told, act)
    outcomes = act.on(rows, told, is_rehearsal=not is_sure)
    if is_sure:
        _say(request, look.listing, act, outcomes)
        there = act.leads_to(outcomes)
        return redirect(there or address_without(request, "choose", "as"))
    context = {
        "listing": look,
        "act": act,
        "form": form,
        "going": [_line(look.listing, one) for one in outcomes if not one.is_refused],
        "left_out": [_line(look.listing, one) for one in outcomes if one.is_refused],
        "gone": _gone(request, rows),
        "seal": _seal(told, act),
        "back": address_without(request, "choose", "as"),
    }
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "web/preview.html", context, status=status)


def _usual(form: forms.Form, act: Act[Any]) -> dict[str, Any]:
    """Return the values for a preview before the form was filled in."""
    return {
        name: act.rehearsed.get(name, field.initial)
        for name, field in form.fields.items()
    }


def _seal(told: Mapping[str, Any], act: Act[Any]) -> str:
    """Return a digest of the values that a preview was made with."""
    counts = {name: told[name] for name in sorted(told) if name not in act.rehearsed}
    return digest("\n".join(f"{name} {value}" for name, value in counts.items()))


def _was_seen(request: WebRequest, told: Mapping[str, Any], act: Act[Any]) -> bool:
    """Return whether the confirmed preview was made with the same values."""
    return request.POST.get("seal") == _seal(told, act)


def _gone(request: WebRequest, rows: Sequence[Row]) -> int:
    """Return how many of the chosen rows no longer exist."""
    if request.POST.get("every"):
        return 0
    return len(set(_keys(request))) - len(rows)


def _line(listing: Listing[Row], outcome: RowOutcome[Row]) -> dict[str, str]:
    """Return the line of a row in a preview."""
    return {
        "key": str(getattr(outcome.row, listing.key)),
        "name": str(outcome.row),
        "sentence": outcome.sentence,
    }


def _say(
    request: WebRequest,
    listing: Listing[Row],
    act: Act[Row],
    outcomes: Sequence[RowOutcome[Row]],
) -> None:
    """Tell how many rows were changed, and which were left out and why."""
    refused = [outcome for outcome in outcomes if outcome.is_refused]
    if done := len(outcomes) - len(refused):
        said = f"{act.done}: {listing.tally(done)}. {act.undo}"
        messages.success(request, said.rstrip())
    if refused:
        lines = [(str(one.row), one.sentence) for one in refused[:REFUSALS_SHOWN]]
        said = format_html(
            "Left out: {}.{}",
            listing.tally(len(refused)),
            format_html_join("", "<br><b>{}</b>: {}", lines),
        )
        if more := len(refused) - len(lines):
            said += format_html("<br>And {} more.", more)
        messages.warning(request, said)
