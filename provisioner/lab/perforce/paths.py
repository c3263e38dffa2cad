"""Perforce names: escaping, wildcards and revision specifiers. Text in, text out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from provisioner.lab.perforce import case
from provisioner.lab.perforce.messages import CommandError

_ESCAPES = {"%": "%25", "@": "%40", "#": "%23", "*": "%2A"}
_UNESCAPES = {code: char for char, code in _ESCAPES.items()}
_ESCAPED = re.compile(r"%(?:25|40|23|2[Aa])")
_SPECIAL = re.compile(r"[%@#*]")
WILDCARD = re.compile(r"\.\.\.|\*|%%[1-9]")
_IN_DIRECTORY = re.compile(r"\*|%%[1-9]")
# More wildcards than that in one pattern are refused. Source: PARAM_MAX_WILDS in the
# published client.
MOST_WILDCARDS = 10

# Above every code point, so path >= prefix and path < prefix + this is a prefix scan.
AFTER_ALL = "\U0010ffff"


def escape(name: str) -> str:
    """Return a file name with the characters that have a meaning escaped."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name)


def unescape(name: str) -> str:
    """Return the file name behind an escaped one."""
    if "%" not in name:
        return name
    return _ESCAPED.sub(lambda match: _UNESCAPES[match[0].upper()], name)


def has_wildcard(pattern: str) -> bool:
    """Tell if a pattern can match more than itself."""
    return WILDCARD.search(pattern) is not None


def literal_prefix(pattern: str) -> str:
    """Return what every match of a pattern begins with."""
    match = WILDCARD.search(pattern)
    return pattern[: match.start()] if match else pattern


def split_pattern(pattern: str) -> tuple[list[str], list[str]]:
    """Return the literals of a pattern and the wildcards between them."""
    return WILDCARD.split(pattern), WILDCARD.findall(pattern)


@lru_cache(maxsize=4096)
def pattern_regex(pattern: str) -> re.Pattern[str]:
    """Return an expression with one group for each wildcard, to be fully matched."""
    literals, wildcards = split_pattern(pattern)
    parts = [re.escape(literals[0])]
    for wildcard, literal in zip(wildcards, literals[1:], strict=True):
        parts.append("(.*)" if wildcard == "..." else "([^/]*)")
        parts.append(re.escape(literal))
    return re.compile("".join(parts), case.flags())


def pattern_matches(pattern: str, path: str) -> bool:
    """Tell if a path matches a pattern."""
    if pattern.endswith("...") and not has_wildcard(pattern[:-3]):
        begins = path.startswith(pattern[:-3])
        return begins or (case.is_ignored() and case.begins(path, pattern[:-3]))
    return _matching_regex(pattern).fullmatch(path) is not None


@lru_cache(maxsize=4096)
def _matching_regex(pattern: str) -> re.Pattern[str]:
    """Return an expression that finds out in little time, whatever the pattern.

    What stands between two wildcards may as well be found at the first place, so no
    other is tried (`(?>…)`). With captures this cannot be done.
    """
    *parts, last = pattern.split("...")
    regex = [f"(?>.*?{_segment(part, is_last=False)})" for part in parts[1:]]
    if not parts:
        return re.compile(_segment(last, is_last=True), case.flags())
    first, end = _segment(parts[0], is_last=False), _segment(last, is_last=True)
    return re.compile(f"{first}{''.join(regex)}.*{end}", case.flags())


def _segment(text: str, *, is_last: bool) -> str:
    """Return what matches a part without `...`; the last one ends with the path."""
    literals = [re.escape(literal) for literal in _IN_DIRECTORY.split(text)]
    regex = [literals[0]]
    for index, literal in enumerate(literals[1:], start=1):
        if is_last and index == len(literals) - 1:
            regex.append(f"[^/]*{literal}")
        elif literal:
            regex.append(f"(?>[^/]*?{literal})")
    return "".join(regex)


@dataclass(frozen=True, kw_only=True)
class RevisionSpec:
    """What stands behind a file name.

    `lower` and `upper` are (sign, text) pairs with the sign `#` or `@`; lower is None
    unless a range was given; both are None for a bare name.
    """

    lower: tuple[str, str] | None = None
    upper: tuple[str, str] | None = None
    # "<", "<=", ">" or ">=" where it is `@>change`, or the like, of the upper point.
    relation: str = ""

    def __str__(self) -> str:
        if self.upper is None:
            return ""
        sign, value = self.upper
        upper = f"{sign}{self.relation}{value}"
        return f"{''.join(self.lower)},{upper}" if self.lower else upper


_RELATION = re.compile(r"[#@](<=|>=|<|>)")
_NUMBER_WORDS = frozenset({"head", "have", "none"})


def split_revision(argument: str) -> tuple[str, RevisionSpec]:
    """Split a file argument into the name and its revision specifier.

    Raises: CommandError for a specifier that makes no sense.
    """
    match = re.search(r"[#@]", argument)
    if match is None:
        return argument, RevisionSpec()
    name, rest = argument[: match.start()], argument[match.start() :]
    first, comma, second = rest.partition(",")
    relation = _RELATION.match(first)
    if relation is not None and not comma:
        upper = _endpoint(first[0] + first[relation.end() :], sign=first[0])
        return name, RevisionSpec(upper=upper, relation=relation[1])
    lower = _endpoint(first, sign=first[0])
    if not comma:
        return name, RevisionSpec(upper=lower)
    sign = second[0] if second[:1] in ("#", "@") else first[0]
    if second[:1] not in ("#", "@"):
        second = sign + second
    return name, RevisionSpec(lower=lower, upper=_endpoint(second, sign=sign))


def _endpoint(text: str, *, sign: str) -> tuple[str, str]:
    value = text[1:]
    if not value or re.search(r"[#@]", value):
        raise CommandError(6246, arg=text)
    if sign == "#" and value not in _NUMBER_WORDS and not value.isdecimal():
        raise CommandError(6161, rev=value)
    return sign, value
