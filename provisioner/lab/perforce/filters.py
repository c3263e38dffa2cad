"""Filters of records, as `p4 fstat -F` takes them: `headType=text & ^haveRev<3`.

Tests (= < > <= >=; `*` in a value stands for anything) are joined by & or a space, by
|, negated by ^, and grouped by parentheses. Source: p4 help jobview. Inferred: that a
field which a record does not have passes no test. Regular expressions (~=) are not part
of the lab.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.wire import Value

Filter = Callable[[Mapping[str, Value]], bool]

_MOST_TOKENS = 200
_TOKEN = re.compile(
    r"\s*(?:(?P<sign>[()&|^])"
    r"|(?P<field>[\w-]+)\s*(?P<relation>~=|>=|<=|=|>|<)\s*"
    r"(?P<value>(?:\\.|[^\s()&|^\\])+))"
)


def parse_filter(text: str) -> Filter:
    """Return what tells if a record passes.

    Raises: CommandError where the text is no filter; NotInLab.
    """
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text.strip()
        self._tokens: list[re.Match[str]] = []
        position = 0
        while position < len(self._text):
            token = _TOKEN.match(self._text, position)
            if token is None or len(self._tokens) == _MOST_TOKENS:
                raise self._refused()
            self._tokens.append(token)
            position = token.end()

    def _refused(self) -> CommandError:
        return CommandError(7198, usage=f"fstat -F filter: cannot read '{self._text}'")

    def _takes(self, sign: str) -> bool:
        """Take the next token if it is that sign."""
        if self._tokens and self._tokens[0]["sign"] == sign:
            del self._tokens[0]
            return True
        return False

    def parse(self) -> Filter:
        found = self._either()
        if self._tokens:
            raise self._refused()
        return found

    def _either(self) -> Filter:
        choices = [self._both()]
        while self._takes("|"):
            choices.append(self._both())
        return lambda record: any(passes(record) for passes in choices)

    def _both(self) -> Filter:
        tests = [self._one()]
        while self._takes("&") or (
            self._tokens and self._tokens[0]["sign"] in (None, "(", "^")
        ):
            tests.append(self._one())
        return lambda record: all(passes(record) for passes in tests)

    def _one(self) -> Filter:
        if self._takes("^"):
            negated = self._one()
            return lambda record: not negated(record)
        if self._takes("("):
            inner = self._either()
            if not self._takes(")"):
                raise self._refused()
            return inner
        if not self._tokens or self._tokens[0]["sign"]:
            raise self._refused()
        token = self._tokens.pop(0)
        if token["relation"] == "~=":
            raise NotInLab("fstat -F with ~=")
        return _test(token["field"], token["relation"], token["value"])


def _test(field: str, relation: str, value: str) -> Filter:
    if relation == "=":
        parts = [re.sub(r"\\(.)", r"\1", part) for part in _STAR.split(value)]
        return lambda record: field in record and _is_like(str(record[field]), parts)
    return lambda record: (
        field in record and _is_ordered(str(record[field]), relation, value)
    )


_STAR = re.compile(r"(?<!\\)\*")


def _is_like(text: str, parts: list[str]) -> bool:
    """Tell if a text is made of parts, with anything between them."""
    first, *inner = parts
    if not inner:
        return text == first
    last = inner.pop()
    position, end = len(first), len(text) - len(last)
    if position > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for part in inner:
        found = text.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True


def _is_ordered(text: str, relation: str, value: str) -> bool:
    """Compare as numbers where both are."""
    if text.isdecimal() and value.isdecimal():
        is_less, is_same = int(text) < int(value), int(text) == int(value)
    else:
        is_less, is_same = text < value, text == value
    if is_same:
        return "=" in relation
    return is_less == relation.startswith("<")
