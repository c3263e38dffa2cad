"""Fields and bases of forms. They check shape only; actions decide the rest."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from django import forms
from django.conf import settings
from django.utils import timezone

from provisioner.lib.limits import Limit, LimitReached
from provisioner.lib.names import LONGEST_NAME, name_validator
from provisioner.lib.refusals import ActionRefused, InvalidRequest
from provisioner.lib.sizes import exact_size_text, parse_size
from provisioner.lib.spans import parse_span, span_text
from provisioner.lib.times import DAY, parse_date
from provisioner.web.selects import lean_selects

Result = TypeVar("Result")


class Refusable(forms.BaseForm):
    """A form whose request an action may refuse."""

    is_refused = False
    limits: tuple[Limit, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        lean_selects(self)

    def arguments(self) -> dict[str, Any]:
        """Return what the form requests, as arguments of its action."""
        return self.cleaned_data

    def tried(self, act: Callable[..., Result], **given: Any) -> Result | None:
        """Do what the form requests; None if it is invalid or the action refuses.

        The action gets `arguments()`, and what is given besides.
        """
        if not self.is_valid():
            return None
        try:
            return act(**given, **self.arguments())
        except ActionRefused as refusal:
            self.refuse(refusal)
            return None

    def refuse(self, refusal: ActionRefused) -> None:
        """Show why the request was refused, at the field concerned."""
        self.is_refused = True
        if isinstance(refusal, LimitReached):
            self.limits = refusal.limits
        field = refusal.field if refusal.field in self.fields else None
        sentence = refusal.sentence
        if field and isinstance(refusal, InvalidRequest):
            sentence = refusal.message
        self.add_error(field, sentence)

    @property
    def http_code(self) -> int:
        """Return the HTTP status of a page with this form."""
        if self.is_refused:
            return 409
        return 422 if self.is_bound and self.errors else 200


class AskingForm(Refusable, forms.Form):
    """A plain form whose request an action may refuse."""


class LinesField(forms.CharField):
    """Lines of text, with LF instead of the CR LF that browsers send."""

    def __init__(self, *, rows: int, **kwargs: Any) -> None:
        widget = forms.Textarea(
            attrs={"rows": rows, "spellcheck": "false", "class": "code"}
        )
        super().__init__(widget=widget, **kwargs)

    def to_python(self, value: Any) -> str:
        text = super().to_python(value) or ""
        return text.replace("\r\n", "\n")


class SizeField(forms.CharField):
    """A number of bytes, such as "100 GiB"."""

    def prepare_value(self, value: Any) -> Any:
        return exact_size_text(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        try:
            return parse_size(text)
        except ValueError as error:
            raise forms.ValidationError(
                "Write a size such as 100 GiB or 512 MiB."
            ) from error


class CodeInput(forms.TextInput):
    """What people type for machines: no spelling checker, no autocompletion."""

    def __init__(self) -> None:
        super().__init__(
            {"autocomplete": "off", "spellcheck": "false", "class": "code"}
        )


class NameField(forms.CharField):
    """A name that becomes part of the names of a volume, a client and a path."""

    widget = CodeInput

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=LONGEST_NAME, validators=[name_validator], **kwargs)


class SpanField(forms.CharField):
    """A duration, such as "30 d" or "1 d 12 h"; empty is None."""

    def prepare_value(self, value: Any) -> Any:
        return span_text(value) if isinstance(value, int) else value

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        try:
            return parse_span(text)
        except ValueError as error:
            raise forms.ValidationError(
                "Write a time such as 30 days, 72 h or 1 d 12 h."
            ) from error


class EndField(forms.CharField):
    """A duration from now, or a day: `dt.timedelta`, or the day's end there.

    None if it is left empty, which stands for what `empty` says.
    """

    def __init__(self, *, label: str, empty: str) -> None:
        super().__init__(
            required=False,
            label=label,
            help_text="Such as 30 days, 2 weeks, 24 Dec or 2026-12-24. "
            f"Empty: {empty}.",
            max_length=40,
            widget=forms.TextInput(attrs={"autocomplete": "off"}),
        )

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text:
            return None
        with suppress(ValueError):
            seconds = parse_span(text)
            self._require_near(seconds // DAY)
            return dt.timedelta(seconds=seconds)
        zone, today = timezone.get_current_timezone(), timezone.localdate()
        try:
            day = parse_date(text, today=today)
        except ValueError as error:
            raise forms.ValidationError(
                "Write a time such as 30 days or 2 weeks, or a date such as 24 Dec "
                "or 2026-12-24."
            ) from error
        self._require_near((day - today).days)
        return dt.datetime.combine(day, dt.time(23, 59), tzinfo=zone)

    def _require_near(self, days: int) -> None:
        """Refuse what calendars cannot count to from every time zone."""
        if abs(days) > settings.CENTURY:
            raise forms.ValidationError("Choose an end within 100 years.")


class ViewForm(AskingForm):
    """The name of a saved view."""

    name = forms.CharField(max_length=60, label="Name of the view")
