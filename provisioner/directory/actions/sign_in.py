"""Sign in by the directory."""

from __future__ import annotations

import structlog
from django.conf import settings

from provisioner.accounts.models import User
from provisioner.directory.people import as_person, directory_rules
from provisioner.directory.refusals import (
    DirectoryRefuses,
    DirectorySilent,
    DisabledThere,
)
from provisioner.gateways.directory.gateway import DirectoryGateway
from provisioner.gateways.errors import GatewayError, TransientGatewayError
from provisioner.identities.actions import account_sign_in
from provisioner.identities.places import place_to_ask
from provisioner.identities.queries import may_be_asked_for
from provisioner.lib import clocks

log = structlog.get_logger(__name__)


def directory_sign_in(*, name: str, password: str) -> User | None:
    """Return the account of whoever has this name and password in the directory.

    None if they are wrong, and for names that are not asked for there: malformed ones,
    and those of accounts whose passwords are checked elsewhere.

    Raises: SignInRefused.
    """
    directory = settings.DIRECTORY
    if (
        directory is None
        or not password
        or not may_be_asked_for(name, issuer=directory.issuer)
    ):
        return None
    with place_to_ask():
        try:
            found = DirectoryGateway(directory).sign_in(
                name, password, now=clocks.database_now()
            )
        except TransientGatewayError as error:
            raise DirectorySilent(provider=directory.name) from error
        except GatewayError as error:
            log.exception("directory_sign_in_failed", **error.log_context())
            raise DirectoryRefuses(provider=directory.name) from error
    if found is None:
        return None
    if found.why_disabled:
        raise DisabledThere(provider=directory.name, why=found.why_disabled)
    person = as_person(found, issuer=directory.issuer)
    return account_sign_in(person, rules=directory_rules())
