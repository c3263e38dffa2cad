"""Filters of records, as `p4 fstat -F` takes them: `fileSize > 1000 & headType=text`.

Tests (= < > <= >=; `*` in a value of `=` matches anything; a backslash escapes the next
character) are joined by & and, with lower precedence, by |; a space is an "and" of the
lowest precedence. ^ negates an operand of "and", and parentheses group. A test passes
if the whole field or any word of it does; it is case-sensitive, and numbers are
compared as numbers.

Source: p4 help fstat ("similar to the one used for 'jobs -e jobview'"; "Filtering is
case-sensitive"; an example like the one above) and p4 help jobview; "Using comparison
operators" in the P4 Command-Line (User) Guide; `p4 fstat` in the command reference.
Inferred: that numbers are compared as such (the example requires it), that a missing
field passes no test, and that ^ may stand alone, as in known scripts. Words without a
field are for jobs, which ignore case; regular expressions (~=) are refused.
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
    r"(?P<value>(?:\\.|[^\s()&|^\\])+)"
    r"|(?P<word>(?:\\.|[^\s()&|^\\=<>~])+))"
)


def parse_filter(text: str, *, command: str = "fstat") -> Filter:
    """Return the test of a record for a filter; the command is that of the `-F`.

    Raises: CommandError if the text is no filter; NotInLab.
    """
    return _Parser(text, option=f"{command} -F").parse()


def parse_jobview(text: str) -> Filter:
    """Return the test of a job, as a record, for a jobview.

    Source: p4 help jobview.

    Raises: CommandError if the text is no jobview; NotInLab.
    """
    passes = _Parser(text.lower(), option="jobs -e", has_words=True).parse()
    return lambda record: passes(
        {name.lower(): str(value).lower() for name, value in record.items()}
    )


class _Parser:
    def __init__(self, text: str, *, option: str, has_words: bool = False) -> None:
        self._option = option
        self._text = text.strip()
        self._tokens: list[re.Match[str]] = []
        position = 0
        while position < len(self._text):
            token = _TOKEN.match(self._text, position)
            if token is None or len(self._tokens) == _MOST_TOKENS:
                raise self._refused()
            if token["word"] and not has_words:
                raise self._refused()
            self._tokens.append(token)
            position = token.end()

    def _refused(self) -> CommandError:
        return CommandError(7198, usage=f"{self._option}: cannot read '{self._text}'")

    def _takes(self, sign: str) -> bool:
        """Take the next token if it is that sign."""
        if self._is_next(sign):
            del self._tokens[0]
            return True
        return False

    def _is_next(self, sign: str) -> bool:
        return bool(self._tokens) and self._tokens[0]["sign"] == sign

    def parse(self) -> Filter:
        found = self._side_by_side()
        if self._tokens:
            raise self._refused()
        return found

    def _side_by_side(self) -> Filter:
        tests = [self._either()]
        while self._tokens and self._tokens[0]["sign"] in (None, "(", "^"):
            tests.append(self._either())
        return lambda record: all(passes(record) for passes in tests)

    def _either(self) -> Filter:
        begins_negated = [self._is_next("^")]
        choices = [self._both()]
        while self._takes("|"):
            begins_negated.append(self._is_next("^"))
            choices.append(self._both())
        if len(choices) > 1 and any(begins_negated):
            raise CommandError(6258)
        return lambda record: any(passes(record) for passes in choices)

    def _both(self) -> Filter:
        tests = [self._one()]
        while self._takes("&"):
            tests.append(self._one())
        return lambda record: all(passes(record) for passes in tests)

    def _one(self) -> Filter:
        if self._takes("^"):
            negated = self._one()
            return lambda record: not negated(record)
        if self._takes("("):
            inner = self._side_by_side()
            if not self._takes(")"):
                raise self._refused()
            return inner
        if not self._tokens or self._tokens[0]["sign"]:
            raise self._refused()
        token = self._tokens.pop(0)
        if token["word"]:
            return _has_word(token["word"])
        if token["relation"] == "~=":
            raise NotInLab(f"{self._option} with ~=")
        return _test(token["field"], token["relation"], token["value"])


def _has_word(word: str) -> Filter:
    parts = _parts(word)
    return lambda record: any(
        _is_like(found, parts)
        for value in record.values()
        for found in (*re.findall(r"\w+", str(value)), str(value))
    )


def _test(field: str, relation: str, value: str) -> Filter:
    parts, plain = _parts(value), _ESCAPED.sub(r"\1", value)

    def passes(text: str) -> bool:
        if relation == "=":
            return _is_like(text, parts)
        return _is_ordered(text, relation, plain)

    def is_passed(record: Mapping[str, Value]) -> bool:
        if field not in record:
            return False
        text = str(record[field])
        return passes(text) or any(passes(word) for word in text.split())

    return is_passed


_ESCAPED = re.compile(r"\\(.)")
_STAR = re.compile(r"(?<!\\)\*")


def _parts(value: str) -> list[str]:
    """Return the text between the stars of a value."""
    return [_ESCAPED.sub(r"\1", part) for part in _STAR.split(value)]


def _is_like(text: str, parts: list[str]) -> bool:
    """Return whether a text consists of these parts with anything in between."""
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
    """Compare as numbers if both are."""
    if text.isdecimal() and value.isdecimal():
        is_less, is_same = int(text) < int(value), int(text) == int(value)
    else:
        is_less, is_same = text < value, text == value
    if is_same:
        return "=" in relation
    return is_less == relation.startswith("<")
