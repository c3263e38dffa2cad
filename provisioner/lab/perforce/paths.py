"""Perforce names: escaping, wildcards and revision specifiers. Text in, text out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from provisioner.lab.perforce import case
from provisioner.lab.perforce.messages import CommandError, NotInLab

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
    """Return a file name with special characters escaped."""
    return _SPECIAL.sub(lambda match: _ESCAPES[match[0]], name)


def unescape(name: str) -> str:
    """Return the file name behind an escaped one."""
    if "%" not in name:
        return name
    return _ESCAPED.sub(lambda match: _UNESCAPES[match[0].upper()], name)


def has_wildcard(pattern: str) -> bool:
    """Return whether a pattern has wildcards."""
    return WILDCARD.search(pattern) is not None


def literal_prefix(pattern: str) -> str:
    """Return the literal start of a pattern."""
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
    """Return whether a path matches a pattern."""
    if pattern.endswith("...") and not has_wildcard(pattern[:-3]):
        begins = path.startswith(pattern[:-3])
        return begins or (case.is_ignored() and case.begins(path, pattern[:-3]))
    return _matching_regex(pattern).fullmatch(path) is not None


@lru_cache(maxsize=4096)
def _matching_regex(pattern: str) -> re.Pattern[str]:
    """Return an expression that matches quickly, whatever the pattern.

    The text between two wildcards may as well be found at the first place, so no other
    is tried (`(?>…)`). With captures this is impossible.
    """
    *parts, last = pattern.split("...")
    regex = [f"(?>.*?{_segment(part, is_last=False)})" for part in parts[1:]]
    if not parts:
        return re.compile(_segment(last, is_last=True), case.flags())
    first, end = _segment(parts[0], is_last=False), _segment(last, is_last=True)
    return re.compile(f"{first}{''.join(regex)}.*{end}", case.flags())


def _segment(text: str, *, is_last: bool) -> str:
    """Return the expression of a part without `...`; the last ends the path."""
    literals = [re.escape(literal) for literal in _IN_DIRECTORY.split(text)]
    regex = [literals[0]]
    for index, literal in enumerate(literals[1:], start=1):
        if is_last and index == len(literals) - 1:
            regex.append(f"[^/]*{literal}")
        elif literal:
            regex.append(f"(?>[^/]*?{literal})")
    return "".join(regex)


@dataclass(frozen=True)
class RevisionEnd:
    """One revision of a specifier: `@>=12` has a sign, a relation and a value.

    `relation` is "" if none was typed, else "<", "<=", "=", ">=" or ">".
    """

    sign: str
    value: str
    relation: str = ""

    def __str__(self) -> str:
        return f"{self.sign}{self.relation}{self.value}"


@dataclass(frozen=True)
class RevisionSpec:
    """The revisions after a file name: none, one, or up to four as a range."""

    ends: tuple[RevisionEnd, ...] = ()

    def __str__(self) -> str:
        return ",".join(map(str, self.ends))


_MOST_ENDS = 4
_RELATION = re.compile(r"<=|>=|<|>|=")
_NUMBER_WORDS = frozenset({"head", "have", "none"})
_ACTIONS = frozenset({"add", "edit", "delete", "branch", "integrate", "import"})


def split_revision(argument: str) -> tuple[str, RevisionSpec]:
    """Split a file argument into the name and its revision specifier.

    Source: "p4 help revisions"; "Relative revisions" of "p4 help undoc".

    Raises: CommandError for an invalid specifier, NotInLab for actions.
    """
    match = re.search(r"[#@]", argument)
    if match is None:
        return argument, RevisionSpec()
    name, rest = argument[: match.start()], argument[match.start() :]
    sign, ends = rest[0], []
    for typed in rest.split(","):
        text = typed if typed[:1] in ("#", "@") else sign + typed
        sign = text[0]
        ends.append(_end(text))
    if len(ends) > _MOST_ENDS:
        raise CommandError(6246, arg=rest)
    return name, RevisionSpec(tuple(ends))


def _end(text: str) -> RevisionEnd:
    sign, typed = text[0], text[1:]
    relation = _RELATION.match(typed)
    value = typed[relation.end() :] if relation else typed
    if not value or re.search(r"[#@]", value):
        raise CommandError(6246, arg=text)
    if sign == "#" and value in _ACTIONS:
        raise NotInLab(f"the revision {text}")
    if sign == "#" and value not in _NUMBER_WORDS and not value.isdecimal():
        raise CommandError(6161, rev=value)
    return RevisionEnd(sign, value, relation[0] if relation else "")
