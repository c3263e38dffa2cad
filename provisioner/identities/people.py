"""What is known of a person elsewhere, and the rules for their account here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Person:
    """Somebody whom a provider or a directory vouches for.

    `name` is meant for the account, and may be anything. Without a mail address the
    account keeps its own. `ids` are uid and gid; None: nothing is said of them.
    """

    issuer: str
    subject: str
    name: str
    email: str = ""
    first_name: str = ""
    last_name: str = ""
    groups: frozenset[str] = frozenset()
    ids: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How people of one provider or directory become accounts.

    `source` is where names come from, `setting` what adopts accounts, both in words of
    refusals. Without `administrators` roles are given on pages. Where passwords are
    checked there, an account that is adopted loses the one that is kept here.
    """

    provider: str
    source: str
    setting: str
    administrators: frozenset[str]
    lowest_uid: int
    adopts_accounts: bool
    checks_passwords: bool = False


@dataclass(frozen=True, kw_only=True)
class Found:
    """A person who is still known elsewhere.

    `why_disabled` is "" if they may sign in.
    """

    person: Person
    why_disabled: str = ""


@dataclass(frozen=True, kw_only=True)
class Source:
    """A directory or a server that a sync asks who is still there.

    `find` returns people by what identifies them, and raises a GatewayError.
    `where_to_look` is what may be wrong if it finds nobody at all.
    """

    issuer: str
    name: str
    rules: Rules
    find: Callable[[Sequence[str]], dict[str, Found]]
    where_to_look: str
