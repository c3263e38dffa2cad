"""Query operators of the ONTAP REST API, such as ``size=>1GB``.

``a|b`` either, ``*`` wildcard, ``!a`` not, ``>`` ``>=`` ``<`` ``<=`` compare, ``a..b``
range, ``null`` and ``!null``, and double quotes around a literal value. A record
without the field matches only ``null``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from provisioner.lab.ontap.conventions.values import size

Scalar = str | int | float | bool
Predicate = Callable[[Sequence[Scalar]], bool]

_TIME = re.compile(r"\d{4}-\d{2}-\d{2}")
_OPERATORS = (">=", "<=", ">", "<")


# Fields with words of an enumeration; a filter takes those in any case.
_ENUMERATIONS = frozenset(
    {
        *("state", "type", "style", "scope", "mode", "security_style", "op_state"),
        *("dedupe", "compression", "compaction", "cross_volume_dedupe"),
        *("protocols", "ro_rule", "rw_rule", "superuser", "chown_mode"),
        *("ntfs_unix_security", "trigger", "commitment", "delete_order"),
        *("defer_delete", "applications", "identity_preservation"),
        *("last_transfer_type", "flexcache_endpoint_type", "policy_class"),
    }
)


def filter_of(field: str, value: str) -> Predicate:
    """Return the test that a query makes of a field."""
    if field.rpartition(".")[2] not in _ENUMERATIONS and field != "tiering.policy":
        return parse_filter(value)
    matches = parse_filter(value.lower())
    return lambda values: matches(
        [have.lower() if isinstance(have, str) else have for have in values]
    )


def parse_filter(value: str) -> Predicate:
    """Return a test of the values that a record has for the field (none: absent)."""
    alternatives = [_parse_one(part) for part in _split_alternatives(value)]
    return lambda values: any(matches(values) for matches in alternatives)


def is_plain(value: str) -> bool:
    """Return whether the filter is equality with the text as written."""
    return not (
        any(mark in value for mark in '*|!<>"')
        or ".." in value
        or value.lower() == "null"
    )


def _split_alternatives(value: str) -> list[str]:
    parts, current, quoted = [], "", False
    for character in value:
        if character == '"':
            quoted = not quoted
        if character == "|" and not quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


def _parse_one(part: str) -> Predicate:
    if part.lower() == "null":
        return lambda values: not values
    if part.lower() == "!null":
        return lambda values: bool(values)
    if len(part) >= 2 and part[0] == part[-1] == '"':
        literal = part[1:-1]
        return lambda values: any(_equals(have, literal) for have in values)
    if part.startswith("!"):
        negated = _parse_one(part[1:])
        return lambda values: bool(values) and not negated(values)
    for operator in _OPERATORS:
        if part.startswith(operator):
            operand = part[len(operator) :]
            return lambda values: any(
                _compares(have, operand, operator=operator) for have in values
            )
    if ".." in part:
        low, _, high = part.partition("..")
        return lambda values: any(
            _compares(have, low, operator=">=") and _compares(have, high, operator="<=")
            for have in values
        )
    if "*" in part:
        pattern = _wildcard(part)
        return lambda values: any(pattern.fullmatch(_text(have)) for have in values)
    return lambda values: any(_equals(have, part) for have in values)


@lru_cache(maxsize=256)
def _wildcard(part: str) -> re.Pattern[str]:
    return re.compile(
        ".*".join(re.escape(piece) for piece in re.split(r"\*+", part)), re.DOTALL
    )


def _text(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _equals(have: Scalar, operand: str) -> bool:
    if isinstance(have, bool):
        return _text(have) == operand.lower()
    if isinstance(have, int | float):
        number = _number(operand)
        return number is not None and have == number
    return have == operand


def _compares(have: Scalar, operand: str, *, operator: str) -> bool:
    left: float | str | None
    right: float | str | None
    if isinstance(have, int | float) and not isinstance(have, bool):
        left, right = have, _number(operand)
    else:
        left, right = _text(have), operand
        times = _seconds(left), _seconds(right)
        if None not in times:
            left, right = times
    if right is None:
        return False
    if operator == ">":
        return left > right  # type: ignore[operator]  # both are of one type here
    if operator == ">=":
        return left >= right  # type: ignore[operator]  # as above
    if operator == "<":
        return left < right  # type: ignore[operator]  # as above
    return left <= right  # type: ignore[operator]  # as above


def _seconds(text: str) -> float | None:
    """Return the time in a text as seconds, whatever its time zone."""
    if not _TIME.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def _number(operand: str) -> float | None:
    try:
        return size(operand)
    except (ValueError, OverflowError):
        pass
    try:
        return float(operand)
    except ValueError:
        return None
