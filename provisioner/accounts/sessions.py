"""Sessions in the database, with their account and where they were last used.

Source: https://docs.djangoproject.com/en/5.2/topics/http/sessions/, "Extending
database-backed session engines".
"""

from __future__ import annotations

import datetime as dt
import hashlib
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore as DatabaseStore
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from provisioner.accounts import origin
from provisioner.accounts.models import Session, User
from provisioner.lib import clocks
from provisioner.lib.prepared import Prepared

NOTED_EVERY = dt.timedelta(minutes=1)
# Long enough to sign in at a provider, or to choose a password by a mailed link.
NOBODYS_LASTS = dt.timedelta(hours=1)


_LIVE = Prepared(
    lambda key, now: Session.objects.filter(session_key=key, expire_date__gt=now),
    values=2,
)


class SessionStore(DatabaseStore):
    """What SESSION_ENGINE names: one per request."""

    # The row as read, or as first written: what follows keeps what it says of use.
    _row: Session | None = None

    @classmethod
    def get_model_class(cls) -> type[Session]:
        return Session

    def load(self) -> dict[str, Any]:
        """Read the row, and keep it; Django keeps only its data."""
        self._row = _LIVE.first(self.session_key, timezone.now())
        if self._row is None:
            self._session_key = None
            return {}
        data: dict[str, Any] = self.decode(self._row.session_data)
        return data

    def create(self) -> None:
        """Begin another session, as each sign-in does."""
        self._row = None
        super().create()

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        session = super().create_model_instance(data)
        assert isinstance(session, Session)
        session.name = name_of(session.session_key)
        session.account_id = int(data[SESSION_KEY]) if SESSION_KEY in data else None
        if session.account_id is None:
            soon = timezone.now() + NOBODYS_LASTS
            session.expire_date = min(session.expire_date, soon)
        if self._row is None:
            here = origin.current()
            session.ip, session.user_agent = here.ip, here.user_agent
            session.signed_in_at = session.last_used_at = clocks.database_now()
        else:
            for field in ("signed_in_at", "last_used_at", "ip", "user_agent"):
                setattr(session, field, getattr(self._row, field))
        self._row = session
        return session

    def note_use(self) -> None:
        """Record when and from where the session was used, once a minute."""
        row = self._row
        if row is None or timezone.now() - row.last_used_at < NOTED_EVERY:
            return
        here = origin.current()
        row.ip, row.user_agent = here.ip, here.user_agent
        Session.objects.filter(pk=row.pk).update(
            last_used_at=Now(), ip=row.ip, user_agent=row.user_agent
        )


def name_of(session_key: str) -> str:
    """Name a session without revealing its key, which would give access to it."""
    return hashlib.sha256(session_key.encode()).hexdigest()[:16]


def sessions_of(account: User) -> QuerySet[Session]:
    """Return a person's sessions that are not over, the last used first."""
    live = Session.objects.filter(account=account, expire_date__gt=Now())
    return live.order_by("-last_used_at", "pk")


def sessions_end(account: User, *, but: str | None = None) -> int:
    """End a person's sessions, except one; return how many there were."""
    rows = Session.objects.filter(account=account).exclude(session_key=but or "")
    return rows.delete()[0]
