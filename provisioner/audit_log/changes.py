"""Changed values in an event: before and after."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from provisioner.lib.times import exact

# A view has thousands of lines; the event keeps them all, a page shows how they begin.
SHOWN_CHARACTERS = 200
# As `isoformat` writes it.
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?[+-]\d\d:\d\d")


class Change(NamedTuple):
    """A changed value, as text. Secret values have no texts."""

    field: str
    before: str
    after: str
    is_secret: bool = False


def changes_between(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    secret: Collection[str] = (),
) -> dict[str, Any]:
    """Return the data of an event: `{field: {"before": …, "after": …}}`.

    A secret field has null: changed, and no values.
    """
    return {
        name: None if name in secret else {"before": before[name], "after": after[name]}
        for name in sorted(after)
        if after[name] != before[name]
    }


def changes_of(data: Mapping[str, Any]) -> list[Change]:
    """Return the changes in an event's data, in order."""
    changes = []
    for name, values in data.items():
        field = name.replace("_", " ")
        if values is None:
            changes.append(Change(field, "", "", is_secret=True))
        elif isinstance(values, dict) and values.keys() == {"before", "after"}:
            before, after = _text(values["before"]), _text(values["after"])
            changes.append(Change(field, before, after))
    return changes


def _text(value: Any) -> str:
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and MOMENT.fullmatch(value):
        return exact(dt.datetime.fromisoformat(value))
    if isinstance(value, list):
        text = ", ".join(map(str, value))
    elif isinstance(value, dict):
        text = ", ".join(f"{name}={each}" for name, each in value.items())
    else:
        text = str(value)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}… ({len(text):,} characters)"
