"""What is known of a person elsewhere, and the rules for their account here."""

from __future__ import annotations

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
