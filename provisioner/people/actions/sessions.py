"""Sessions of pages: end one, all others, or all of a person."""

from __future__ import annotations

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import Session, User
from provisioner.accounts.sessions import sessions_end
from provisioner.audit_log.actions import record_event
from provisioner.lib.refusals import NotAllowed
from provisioner.people.actions.accounts import locked_account


@transaction.atomic
def session_end(*, by: User, session: Session) -> None:
    """End a session, effective with its next request: one's own, or any as an
    administrator.

    Raises: NotAllowed.
    """
    account = session.account
    if account is None or (account.pk != by.pk and not by.is_administrator):
        raise NotAllowed
    if account.pk != by.pk:
        locked_account(account, by=by)
    ended, _ = Session.objects.filter(pk=session.pk).delete()
    if ended:
        _note(account, f"Ended the {session}.", number=ended)


@transaction.atomic
def sessions_end_others(*, by: User, but: str | None) -> int:
    """End a person's own sessions but the one with this key; return how many."""
    ended = sessions_end(by, but=but)
    if ended:
        _note(by, "Ended all other sessions.", number=ended)
    return ended


@transaction.atomic
def sessions_end_all(*, by: User, account: User) -> int:
    """End all sessions of a person; return how many there were.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    ended = sessions_end(locked_account(account, by=by))
    if ended:
        _note(account, f"Ended all sessions of {account}.", number=ended)
    return ended


def _note(account: User, message: str, *, number: int) -> None:
    record_event(
        account, kind="session_ended", message=message, data={"number": number}
    )
