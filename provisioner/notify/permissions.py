"""Who may change a webhook."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.accounts.permissions import (
    PERMISSIONS,
    Role,
    Verb,
    can_be_told,
    roles_of,
)
from provisioner.notify.models import Webhook


def can_change_webhook(user: User, webhook: Webhook) -> bool:
    roles = roles_of(user)
    if webhook.owner_id == user.pk and can_be_told(user):
        roles = roles | {Role.OWNER}
    return bool(PERMISSIONS[Verb.CHANGE_WEBHOOK] & roles)
