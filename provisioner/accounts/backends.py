"""The account of a session, however its owner signed in."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import ModelBackend

from provisioner.accounts.models import User
from provisioner.lib.prepared import Prepared

_WITH_TEAM = Prepared(lambda pk: User.objects.select_related("team").filter(pk=pk))


class SessionBackend(ModelBackend):
    """Read the account of a session, with its team, in a query that is prepared."""

    def get_user(self, user_id: Any) -> User | None:
        """Return the account, None if it is closed."""
        account = _WITH_TEAM.first(user_id)
        if account is None or not self.user_can_authenticate(account):
            return None
        return account
