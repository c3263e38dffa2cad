"""The period of charts: kept in the URL, compared with the previous one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone

DAY, HOUR = dt.timedelta(days=1), dt.timedelta(hours=1)
LENGTHS = {
    "day": ("Day", DAY),
    "week": ("Week", 7 * DAY),
    "month": ("30 days", 30 * DAY),
    "quarter": ("Quarter", 91 * DAY),
}
USUAL = "month"
MOST_DAYS = 366


@dataclass(frozen=True, kw_only=True)
class Span:
    """From `begin` until just before `end`, both in UTC, by hours or by days."""

    begin: dt.datetime
    end: dt.datetime
    step: dt.timedelta = DAY
    is_compared: bool = False

    @property
    def length(self) -> dt.timedelta:
        return self.end - self.begin

    @property
    def earliest(self) -> dt.datetime:
        """The start of the previous period, if that is compared."""
        return self.begin - self.length if self.is_compared else self.begin

    @property
    def days(self) -> Iterator[dt.date]:
        day = self.begin.date()
        while day <= (self.end - HOUR).date():
            yield day
            day += DAY

    @property
    def days_before(self) -> dt.timedelta:
        """How many days earlier the compared day is."""
        return max(self.length, DAY)

    @property
    def steps(self) -> Iterator[dt.datetime]:
        moment = self.begin
        while moment < self.end:
            yield moment
            moment += self.step

    def label(self, moment: dt.datetime) -> str:
        if self.step == HOUR:
            return f"{moment:%-d %b %H:%M}"
        return f"{moment:%-d %b %Y}"


class SpanForm(forms.Form):
    """The filter of a period: a preset until now, or from day to day."""

    range = forms.ChoiceField(
        required=False,
        choices=[
            *((name, label) for name, (label, _) in LENGTHS.items()),
            ("custom", "Custom"),
        ],
    )
    since = forms.DateField(
        required=False,
        label="From",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    until = forms.DateField(
        required=False,
        label="To",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    compare = forms.BooleanField(required=False, label="Compare with the period before")

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        since, until = data.get("since"), data.get("until")
        if data.get("range") != "custom" or self.errors:
            return data
        if since is None:
            self.add_error("since", "Choose the first day.")
        elif until is None:
            self.add_error("until", "Choose the last day.")
        elif until < since:
            self.add_error(
                "until",
                f"It ends before it begins on {since:%-d %b %Y}.",
            )
        elif (until - since).days >= MOST_DAYS:
            self.add_error("until", f"Choose at most {MOST_DAYS} days.")
        return data


def span_of(form: SpanForm) -> Span:
    """Return the requested period, or the default if it is invalid."""
    is_right = form.is_valid()
    data = form.cleaned_data
    is_compared = bool(data.get("compare"))
    if is_right and data["range"] == "custom":
        return Span(
            begin=_midnight(data["since"]),
            end=_midnight(data["until"] + DAY),
            is_compared=is_compared,
        )
    now = timezone.now().astimezone(dt.UTC)
    if is_right and data["range"] == "day":
        end = now.replace(minute=0, second=0, microsecond=0) + HOUR
        return Span(begin=end - DAY, end=end, step=HOUR, is_compared=is_compared)
    _, length = LENGTHS[(is_right and data["range"]) or USUAL]
    end = _midnight(now.date() + DAY)
    return Span(begin=end - length, end=end, is_compared=is_compared)


def span_links(query: QueryDict, chosen: str) -> list[tuple[str, str, bool]]:
    """Return the presets with their URLs, and whether each is current."""
    links = []
    for name, (label, _) in LENGTHS.items():
        other = query.copy()
        for gone in ("since", "until"):
            other.pop(gone, None)
        other["range"] = name
        links.append((label, f"?{other.urlencode()}", name == chosen))
    return links


def _midnight(day: dt.date) -> dt.datetime:
    return dt.datetime.combine(day, dt.time(), tzinfo=dt.UTC)
