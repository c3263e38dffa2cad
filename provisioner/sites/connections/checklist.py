"""A list of checks that is gone through once: each says what it saw."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import structlog
from django.conf import settings

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, Refused
from provisioner.sites.models import ConnectionTest

log = structlog.get_logger(__name__)

# Somebody waits for the page: no single answer may take longer, nor all together.
ANSWER_WITHIN_SECONDS = 5.0
ALL_WITHIN_SECONDS = 20.0

Outcome = ConnectionTest.Outcome


@dataclass(frozen=True, kw_only=True)
class Check:
    """One of them. `name` is a word for programs; `advice` is "" where all is well."""

    name: str
    outcome: str
    sentence: str
    advice: str = ""


class Wrong(Exception):
    """A check found something that keeps Cloneyard from working."""

    outcome = Outcome.FAILED

    def __init__(self, sentence: str, *, advice: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.advice = advice


class Remark(Wrong):
    """A check found something worth knowing that stops nothing."""

    outcome = Outcome.REMARKED


class Unset(Wrong):
    """Nobody has said what something is."""


class Checklist:
    """What was checked so far, and what of it failed."""

    def __init__(self, *, seconds: float = ALL_WITHIN_SECONDS) -> None:
        self.checks: list[Check] = []
        self._seconds = seconds
        self._ends_at = time.monotonic() + seconds

    def look(
        self,
        name: str,
        look: Callable[[], str],
        *,
        advice: str,
        after: Iterable[str] = (),
        is_last: bool = False,
    ) -> None:
        """Look once, and note the sentence that the check returns or raises.

        `advice` says what to do where a far side refuses. Nothing is checked after
        something that failed, and nothing but what `is_last` once the time is over.
        """
        if not self.has_passed(after):
            outcome = Outcome.SKIPPED
            sentence = "It comes after what failed above."
            check = Check(name=name, outcome=outcome, sentence=sentence)
        elif time.monotonic() > self._ends_at and not is_last:
            outcome = Outcome.SKIPPED
            sentence = f"The {self._seconds:g} seconds of a test were over."
            check = Check(name=name, outcome=outcome, sentence=sentence)
        else:
            check = _checked(name, look, advice=advice)
        self.checks.append(check)

    def has_passed(self, names: Iterable[str]) -> bool:
        """Return whether nothing of these failed or was left out."""
        stopped = {
            check.name
            for check in self.checks
            if check.outcome in (Outcome.FAILED, Outcome.SKIPPED)
        }
        return stopped.isdisjoint(names)


def _checked(name: str, look: Callable[[], str], *, advice: str) -> Check:
    try:
        return Check(name=name, outcome=Outcome.PASSED, sentence=look())
    except Wrong as wrong:
        outcome, sentence, advice = wrong.outcome, wrong.sentence, wrong.advice
    except GatewayError as error:
        outcome, sentence = Outcome.FAILED, error.sentence
    except Exception:
        # Ours to mend, but not a reason to say nothing about all the rest.
        log.exception("connection_check_broke", check=name)
        outcome = Outcome.FAILED
        sentence = "Cloneyard failed while looking."
        advice = (
            "This is a bug of Cloneyard's: the log of the process that looked has "
            "the reason, as connection_check_broke."
        )
    return Check(name=name, outcome=outcome, sentence=sentence, advice=advice)


def secret_of(variable: str, *, key: str, host: str, system: str) -> str:
    """Return which variable a secret comes from, never its value.

    Raises: Unset, Wrong.
    """
    own, shared = settings.SITE_SECRET_NAMES(variable, key=key)
    advice = (
        f"Set {own}, or {own}_FILE to the path of a file with it, in the environment "
        "of the web server and every worker. Then restart them."
    )
    try:
        secret = settings.SITE_SECRET(variable, key=key)
        source = settings.SITE_SECRET_SOURCE(variable, key=key)
    except (OSError, UnicodeDecodeError) as error:
        sentence = f"The file that {own}_FILE or {shared}_FILE names cannot be read."
        raise Wrong(sentence, advice=advice) from error
    if not secret:
        sentence = f"Neither {own} nor {shared} is set for this process."
        raise Unset(sentence, advice=advice)
    try:
        registry.require_secret_host(host, system=system)
    except Refused as refusal:
        raise Wrong(
            refusal.sentence,
            advice=f"Add {host} to SECRET_HOSTS in the environment of the web server "
            "and of every worker, if it is meant.",
        ) from refusal
    return f"{source or own} is set, and is sent to {host}."
