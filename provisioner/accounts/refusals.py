"""Refusals about accounts and their tokens."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.lib.refusals import ActionRefused, NotAllowed


class SignInRefused(ActionRefused):
    """You could not be signed in. Try again, or ask an administrator."""

    code = "sign_in_refused"
    http_status = 401


class OutOfScope(NotAllowed):
    """This is outside the scope of this token: {what}. Use another one, or create one
    that allows it.
    """

    code = "token_scope"


class AccountNotActive(ActionRefused):
    """The account “{username}” is not active. Choose another one, or activate it."""

    code = "account_not_active"


class AccountIncomplete(ActionRefused):
    """The account {username} has no uid and gid, so it cannot own files. An
    administrator can add them.
    """

    code = "account_incomplete"


def require_complete(user: User) -> None:
    """Refuse an account that cannot own files.

    Raises: AccountIncomplete.
    """
    if user.uid is None or user.gid is None:
        raise AccountIncomplete(username=user.username)
