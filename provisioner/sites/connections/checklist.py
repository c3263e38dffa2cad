"""Checks that run one after another, each with its result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import structlog
from django.conf import settings

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, Refused
from provisioner.sites.models import ConnectionCheck

log = structlog.get_logger(__name__)

# Somebody waits for the page: no single answer may take longer, nor all together.
ANSWER_WITHIN_SECONDS = 5.0
ALL_WITHIN_SECONDS = 20.0

Outcome = ConnectionCheck.Outcome
AnyLook = TypeVar("AnyLook", bound=Callable[[Any], str])


@dataclass(frozen=True, kw_only=True)
class Check:
    """The result of a check. `name` is a stable code; `advice` is "" if all is well.

    `seconds` is how long it took.
    """

    name: str
    outcome: str
    sentence: str
    advice: str = ""
    seconds: float = field(default=0.0, compare=False)


class Wrong(Exception):
    """A check found something that prevents Cloneyard from working."""

    outcome = Outcome.FAILED

    def __init__(self, sentence: str, *, advice: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.advice = advice


class Remark(Wrong):
    """A check found something worth knowing that prevents nothing."""

    outcome = Outcome.REMARKED


class Unset(Wrong):
    """A secret is not configured."""


@dataclass(frozen=True, kw_only=True)
class _Declared:
    advice: str
    after: tuple[str, ...]
    is_last: bool


def check(
    *, advice: str = "", after: tuple[str, ...] = (), is_last: bool = False
) -> Callable[[AnyLook], AnyLook]:
    """Declare a method as the check of its name, run after those that it needs.

    It returns what it found, or raises Wrong or Remark. `advice` says what to do if a
    remote system refuses; it may name attributes of the object, such as {site.svm}. A
    check that `is_last` runs even after the time limit.
    """

    def declare(look: AnyLook) -> AnyLook:
        vars(look)["declared"] = _Declared(advice=advice, after=after, is_last=is_last)
        return look

    return declare


class Checks:
    """The checks of one system: methods of a class that `check` declares, in order."""

    seconds = ALL_WITHIN_SECONDS
    """How long all of them may take."""

    def run(self, *names: str) -> list[Check]:
        """Run all checks, or those named, and return their results.

        Nothing is checked after a check that failed or was skipped.
        """
        ends_at = time.monotonic() + self.seconds
        done: list[Check] = []
        stopped: set[str] = set()
        for name, look in vars(type(self)).items():
            declared: _Declared | None = getattr(look, "declared", None)
            if declared is None or (names and name not in names):
                continue
            if not stopped.isdisjoint(declared.after):
                seen = _skipped(name, "It comes after what failed above.")
            elif time.monotonic() > ends_at and not declared.is_last:
                why = f"The {self.seconds:g} seconds of a test were over."
                seen = _skipped(name, why)
            else:
                advice = declared.advice.format_map(vars(self))
                began = time.monotonic()
                seen = _checked(name, partial(look, self), advice=advice)
                seen = replace(seen, seconds=time.monotonic() - began)
            if seen.outcome in (Outcome.FAILED, Outcome.SKIPPED):
                stopped.add(name)
            done.append(seen)
        return done


def _skipped(name: str, sentence: str) -> Check:
    return Check(name=name, outcome=Outcome.SKIPPED, sentence=sentence)


def _checked(name: str, look: Callable[[], str], *, advice: str) -> Check:
    try:
        return Check(name=name, outcome=Outcome.PASSED, sentence=look())
    except Wrong as wrong:
        outcome, sentence, advice = wrong.outcome, wrong.sentence, wrong.advice
    except GatewayError as error:
        outcome, sentence = Outcome.FAILED, error.sentence
    except Exception:
        # Ours to fix, but no reason to keep silent about all the rest.
        log.exception("connection_check_broke", check=name)
        outcome = Outcome.FAILED
        sentence = "The check failed in Cloneyard itself."
        advice = (
            "This is a bug in Cloneyard. The log of the process that ran the check "
            "has the reason, as connection_check_broke."
        )
    return Check(name=name, outcome=outcome, sentence=sentence, advice=advice)


def secret_of(variable: str, *, key: str, host: str, system: str) -> str:
    """Return the name of the variable that holds a secret, never its value.

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
