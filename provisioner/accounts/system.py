"""Cloneyard's own account, for what happens automatically."""

from __future__ import annotations

from django.contrib.auth.hashers import make_password

from provisioner.accounts.models import User

SYSTEM_USERNAME = "cloneyard.system"


def system_user() -> User:
    """Return Cloneyard's own account in events. Nobody can sign in with it.

    What happens automatically must not look like an action of the owner.
    """
    user, _ = User.objects.get_or_create(
        username=SYSTEM_USERNAME,
        defaults={
            "is_service": True,
            "is_staff": True,
            "password": make_password(None),
        },
    )
    return user
