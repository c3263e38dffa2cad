"""The one view behind all lists: the page, the CSV download, and bulk actions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_safe

from provisioner.lib.refusals import InvalidRequest
from provisioner.web.bulk import MOST_AT_A_TIME, RowOutcome
from provisioner.web.http import View, WebRequest, csv_answer
from provisioner.web.lists.acts import Act, Row
from provisioner.web.lists.listing import Listing, Look, address_without
from provisioner.web.posting import require_safe_or_POST

REFUSALS_SHOWN = 20


def list_page(listing: Listing[Any], template: str) -> View[[]]:
    """Return the view of a list without other context; POST needs acts."""

    @(require_safe_or_POST if listing.acts else require_safe)
    def view(request: WebRequest) -> HttpResponseBase:
        return list_answer(request, listing, template)

    return view


def list_answer(
    request: WebRequest,
    listing: Listing[Any],
    template: str,
    context: Mapping[str, Any] | None = None,
) -> HttpResponseBase:
    """Answer with a list as a page or as CSV, or act on its rows.

    A POST names rows and an action. The first is answered with a preview. The second
    does it, or shows errors at their fields; in between, scripts request the effect of
    the values being typed.
    """
    look = Look(listing, request)
    if request.method == "POST":
        return _acted(request, look, template, context)
    if request.GET.get("as") == "csv":
        return csv_answer(listing.name, look.as_csv(), to=request.user)
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
    """Return the chosen rows: all matching ones, or the ticked ones."""
    rows = look.rows
    if not request.POST.get("every"):
        keys = _keys(request)[: MOST_AT_A_TIME + 1]
        rows = look.listing.find(look.user, keys)
        rows = look.listing.ordered(rows, look.sort)
    return list(rows[: MOST_AT_A_TIME + 1])


def _keys(request: WebRequest) -> list[str]:
    """Return the ticked keys, and those that a preview left out."""
    keys = request.POST.getlist("chosen") + request.POST.getlist("left_out")
    return list(dict.fromkeys(keys))


def _previewed_or_done(
    request: WebRequest, look: Look[Row], act: Act[Row], rows: Sequence[Row]
) -> HttpResponse:
    step = request.POST.get("step")
    form = act.form(request.POST if step else None)
    kept = {*request.POST.getlist("left_out")}
    sure = [row for row in rows if _key(look.listing, row) not in kept]
    if step == "sure" and sure and form.is_valid():
        outcomes = act.on(sure, form.cleaned_data)
        _say(request, look.listing, act, outcomes)
        there = act.leads_to(outcomes)
        return redirect(there or address_without(request, "choose", "as"))
    context = {
        "preview": Preview.of(look.listing, act, form, rows, gone=_gone(request, rows)),
        "act": act,
        "form": form,
        "back": address_without(request, "choose", "as"),
    }
    is_wrong = step == "sure" or (form.errors and not request.htmx)
    status = 422 if is_wrong else 200
    return render(request, "web/preview.html", context, status=status)


@dataclass(frozen=True, kw_only=True)
class Preview:
    """The effect of a bulk action on the chosen rows.

    While the form is incomplete no row has a sentence, and `lacks` names what is
    missing. `gone` is how many of the chosen rows no longer exist.
    """

    listing: Listing[Any]
    going: list[dict[str, str]]
    left_out: list[dict[str, str]]
    gone: int
    is_known: bool
    lacks: list[str]
    has_form: bool

    @classmethod
    def of(
        cls,
        listing: Listing[Row],
        act: Act[Row],
        form: forms.Form,
        rows: Sequence[Row],
        *,
        gone: int,
    ) -> Preview:
        tried = form if form.is_bound else type(form)(_usual(form, act))
        is_known = tried.is_valid()
        if is_known:
            outcomes = act.preview(rows, tried.cleaned_data)
        else:
            outcomes = [RowOutcome(row=row, sentence="") for row in rows]
        lines = [(one.is_refused, _line(listing, one)) for one in outcomes]
        return cls(
            listing=listing,
            going=[line for is_refused, line in lines if not is_refused],
            left_out=[line for is_refused, line in lines if is_refused],
            gone=gone,
            is_known=is_known,
            lacks=_complaints(form),
            has_form=bool(form.fields),
        )

    @property
    def headline(self) -> str:
        tally = self.tally
        return tally[0].upper() + tally[1:] if self.going else "Nothing happens"

    @property
    def left_out_count(self) -> int:
        return len(self.left_out) + self.gone

    @property
    def can_go_on(self) -> bool:
        """Whether something happens, or might with other values of the form."""
        return bool(self.going) or self.has_form

    @property
    def tally(self) -> str:
        return self.listing.tally(len(self.going))

    @property
    def summary(self) -> list[tuple[str, int]]:
        """Counts of equal effects, most frequent first."""
        counted = Counter(line["sentence"] for line in self.going)
        return counted.most_common() if len(counted) < len(self.going) else []


def _usual(form: forms.Form, act: Act[Any]) -> dict[str, Any]:
    """Return the values for a preview before the form was filled in."""
    return {
        name: act.rehearsed.get(name, field.initial)
        for name, field in form.fields.items()
    }


def _complaints(form: forms.Form) -> list[str]:
    """Return the errors of the form's values. A missing value is not an error yet."""
    return [
        message
        for name, errors in form.errors.get_json_data().items()
        for message in (error["message"] for error in errors)
        if name == NON_FIELD_ERRORS or form[name].data
    ]


def _key(listing: Listing[Row], row: Row) -> str:
    return str(getattr(row, listing.key))


def _gone(request: WebRequest, rows: Sequence[Row]) -> int:
    """Return how many of the chosen rows no longer exist."""
    if request.POST.get("every"):
        return 0
    return len(set(_keys(request))) - len(rows)


def _line(listing: Listing[Row], outcome: RowOutcome[Row]) -> dict[str, str]:
    """Return the line of a row in a preview."""
    return {
        "key": _key(listing, outcome.row),
        "name": str(outcome.row),
        "sentence": outcome.sentence,
    }


def _say(
    request: WebRequest,
    listing: Listing[Row],
    act: Act[Row],
    outcomes: Sequence[RowOutcome[Row]],
) -> None:
    """Report how many rows were changed, and which were refused and why."""
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
