"""The origin of a call: who asks, by what means, from which address.

The edges (web, API, worker, command line) set it once; the audit log reads it here, so
that no signature has to pass it on.
"""

from __future__ import annotations

import hashlib
import ipaddress
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import PurePath

from django.contrib.auth import load_backend
from django.http import HttpRequest

from provisioner.accounts.attempts import client_address
from provisioner.accounts.models import ApiToken, User

LONGEST_USER_AGENT = 120
MANAGE = "manage.py"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """`via` is the means: a token, a session, a worker's job, a command.

    `actor` is None if nobody has signed in; `ip` is None without a request.
    """

    via: str
    actor: User | None = None
    ip: str | None = None
    user_agent: str = ""


_origin: ContextVar[Origin | None] = ContextVar("origin", default=None)


def current() -> Origin:
    """Return the current origin, by default this program."""
    return _origin.get() or Origin(via=_program())


@contextmanager
def coming_from(origin: Origin) -> Iterator[None]:
    """Record everything in the block under this origin."""
    token = _origin.set(origin)
    try:
        yield
    finally:
        _origin.reset(token)


@contextmanager
def coming_by(via: str) -> Iterator[None]:
    """Replace the means of the origin in the block, whoever asks."""
    with coming_from(replace(current(), via=via)):
        yield


def origin_of(request: HttpRequest) -> Origin:
    """Return the origin of a request whose sender is not known yet."""
    agent = request.headers.get("User-Agent", "")
    printable = "".join(c if c.isprintable() else "?" for c in agent)
    return Origin(
        via="",
        ip=_as_address(client_address(request)),
        user_agent=printable[:LONGEST_USER_AGENT],
    )


def signed_in(user: User, *, via: str) -> None:
    """Record who sent the request, until it ends."""
    if _origin.get() is not None:
        _origin.set(replace(current(), actor=user, via=via))


def means_of(backend: str) -> str:
    """Return how a backend of Django signs people in, as the audit log says it."""
    return str(getattr(load_backend(backend), "via", "password"))


def by_session(session_key: str | None) -> str:
    """Name a session without revealing its key, which would give access to it."""
    if not session_key:
        return "session"
    return f"session {hashlib.sha256(session_key.encode()).hexdigest()[:8]}"


def by_token(token: ApiToken) -> str:
    """Name a token as its owner's list of tokens does."""
    return f"token {token.token_key}"


def _as_address(text: str) -> str | None:
    """Return an IP address; None for anything else, such as the name of a socket."""
    try:
        return str(ipaddress.ip_address(text.strip("[]").partition("%")[0]))
    except ValueError:
        return None


def _program() -> str:
    """Return "manage.py worker" or "gunicorn": no argument that could be a secret."""
    name = PurePath(sys.argv[0]).name if sys.argv else ""
    if name == MANAGE and len(sys.argv) > 1:
        return f"{name} {sys.argv[1]}"[:200]
    return name[:200] or "python"
