"""What a login still lacks before its user may give commands.

Source: "Password administration" and "Triggering for multi-factor authentication" of
the administrator's guide. Inferred: which message says that a password has to be
changed, and that every command but those about logins meets both.
"""

from __future__ import annotations

from provisioner.lab.perforce import auth
from provisioner.lab.perforce.database import Database
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.specstore import find_spec

_ABOUT_LOGINS = frozenset({"login", "logout", "passwd", "password"})


def check_login_is_complete(database: Database, *, user: str, command: str) -> None:
    """Refuse a user who has to change the password, or to give a second factor.

    Nobody can give one here: p4 login2 is no part of the lab.

    Raises: CommandError.
    """
    if command in _ABOUT_LOGINS:
        return
    if auth.must_change_password(database, user=user):
        raise CommandError(7623)
    spec = find_spec(database, kind="user", name=user)
    if spec is not None and spec.text("AuthMethod").endswith("+2fa"):
        raise CommandError(8059)
