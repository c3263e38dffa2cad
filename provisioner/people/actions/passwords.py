"""Passwords: set by an administrator, or reset by mail."""

from __future__ import annotations

import datetime as dt

from django.contrib.auth.forms import PasswordResetForm
from django.db import transaction
from procrastinate.contrib.django import app

from provisioner.accounts import permissions
from provisioner.accounts.mails import mails_are_sent
from provisioner.accounts.models import User
from provisioner.accounts.sessions import sessions_end
from provisioner.accounts.tokens import token_revoke, tokens_of
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.models import Event
from provisioner.engine.deferring import defer
from provisioner.identities.queries import password_keeper
from provisioner.lib import clocks
from provisioner.people.actions.accounts import check_password, locked_account
from provisioner.people.refusals import NoMailGoesThere, PasswordIsElsewhere

MAIL_TASK = "send_password_mail"
ASKED = "password_mail_asked"
MAILED_ONCE_IN = dt.timedelta(minutes=5)


@transaction.atomic
def account_set_password(
    *, by: User, account: User, password: str, revokes_tokens: bool
) -> int:
    """Set a password, which ends the person's sessions.

    Return how many tokens were revoked.

    Raises: NotAllowed, InvalidRequest, PasswordIsElsewhere.
    """
    permissions.require(permissions.can_administer(by))
    row = locked_account(account, by=by)
    _require_password_here(row)
    check_password(password, row)
    row.set_password(password)
    row.save(update_fields=["password"])
    sessions_end(row)
    tokens = list(tokens_of(row)) if revokes_tokens else []
    for token in tokens:
        token_revoke(token)
    return len(tokens)


@transaction.atomic
def password_mail_to(*, by: User, account: User) -> None:
    """Mail a person a link to choose a password.

    Raises: NotAllowed, NoMailGoesThere, PasswordIsElsewhere.
    """
    permissions.require(permissions.can_administer(by))
    account = locked_account(account, by=by)
    _require_password_here(account)
    if not (mails_are_sent() and account.email and account.is_active):
        raise NoMailGoesThere(name=account.get_username())
    _queue_mail(account)


def password_mail_ask(*, address: str) -> None:
    """Mail everybody with this address; never reveal whether there is anybody.

    The mails are queued, so an unknown address is answered as fast. Whoever was mailed
    lately is not mailed again: anybody can ask, from as many places as they like.
    """
    if mails_are_sent():
        mailed = set(
            Event.objects.filter(
                kind=ASKED,
                subject_kind=Event.SubjectKind.ACCOUNT,
                at__gt=clocks.database_now() - MAILED_ONCE_IN,
            ).values_list("subject_id", flat=True)
        )
        for account in PasswordResetForm().get_users(address):
            if account.pk not in mailed:
                _queue_mail(account)


def _require_password_here(account: User) -> None:
    """Raises: PasswordIsElsewhere."""
    keeper = password_keeper(account)
    if keeper:
        raise PasswordIsElsewhere(name=account.username, provider=keeper)


def _queue_mail(account: User) -> None:
    with transaction.atomic():
        mail = app.configure_task(MAIL_TASK, queue="sweeps")
        defer(mail, account_id=account.pk)
        record_event(
            account,
            kind=ASKED,
            message="Requested a mail to choose a password.",
        )
