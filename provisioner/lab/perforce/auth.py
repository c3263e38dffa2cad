"""Passwords, tickets and the challenges that prove one without sending it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from dataclasses import dataclass

from provisioner.lab.perforce.database import Database


def md5(text: str) -> str:
    """Return the digest that the protocol uses everywhere: upper-case hex."""
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest().upper()


def new_token() -> str:
    """Return 32 random upper-case hex digits: a challenge or a ticket."""
    return secrets.token_hex(16).upper()


def prompt_answer(password_hash: str, *, token: str, address: str) -> str:
    """Return the answer to a login prompt of a client that knows the password."""
    return md5(md5(password_hash + token) + address)


def challenge_answer(secret: str, *, token: str, address: str) -> str:
    """Return the answer of a client that has a ticket or password hash."""
    return md5(md5(token + secret) + address)


def same(one: str, other: str) -> bool:
    """Compare two answers in constant time."""
    return hmac.compare_digest(one.encode(), other.encode())


@dataclass(frozen=True, kw_only=True)
class Ticket:
    """A login; `expires_at` is seconds since the epoch."""

    ticket: str
    expires_at: float

    @property
    def seconds_left(self) -> int:
        return max(0, int(self.expires_at - time.time()))


def find_password_hash(database: Database, *, user: str) -> str | None:
    """Return the digest of a user's password; None without one."""
    row = database.execute("SELECT hash FROM passwords WHERE user=?", user).fetchone()
    return str(row[0]) if row else None


def set_password_hash(database: Database, *, user: str, password_hash: str) -> None:
    """Set a password by its digest ("" removes it); its tickets end."""
    with database.writing():
        database.execute("DELETE FROM passwords WHERE user=?", user)
        database.execute("DELETE FROM tickets WHERE user=?", user)
        database.execute("DELETE FROM password_resets WHERE user=?", user)
        if password_hash:
            database.execute("INSERT INTO passwords VALUES (?,?)", user, password_hash)


def require_new_password(database: Database, *, user: str) -> None:
    """Let a user with a password do nothing before they have changed it."""
    with database.writing():
        database.execute(
            "INSERT OR IGNORE INTO password_resets "
            "SELECT user FROM passwords WHERE user=?",
            user,
        )


def must_change_password(database: Database, *, user: str) -> bool:
    """Return whether a user has to change the password first."""
    found = database.execute("SELECT 1 FROM password_resets WHERE user=?", user)
    return found.fetchone() is not None


def tickets_of(database: Database, *, user: str) -> list[Ticket]:
    """Return a user's tickets, including expired ones."""
    rows = database.execute("SELECT ticket, expires FROM tickets WHERE user=?", user)
    return [Ticket(ticket=str(row[0]), expires_at=float(row[1])) for row in rows]


def issue_ticket(database: Database, *, user: str, lifetime_seconds: float) -> Ticket:
    """Return the user's ticket: the valid one extended, or a new one."""
    expires_at = time.time() + lifetime_seconds
    with database.writing():
        live = [t for t in tickets_of(database, user=user) if t.seconds_left]
        ticket = Ticket(
            ticket=live[0].ticket if live else new_token(), expires_at=expires_at
        )
        database.execute("DELETE FROM tickets WHERE user=?", user)
        database.execute(
            "INSERT INTO tickets VALUES (?,?,?)", ticket.ticket, user, expires_at
        )
    return ticket


def expire_tickets(database: Database, *, user: str) -> None:
    """Let every login of a user expire now."""
    with database.writing():
        database.execute(
            "UPDATE tickets SET expires=? WHERE user=?", time.time() - 1, user
        )


def end_tickets(database: Database, *, user: str) -> None:
    """End every login of a user. Safe to repeat."""
    with database.writing():
        database.execute("DELETE FROM tickets WHERE user=?", user)
