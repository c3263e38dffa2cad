"""What Perforce says of a person, as accounts need it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.conf import settings

from provisioner.accounts.models import Team
from provisioner.gateways import registry
from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.types import PerforcePerson
from provisioner.identities.people import Found, Person, Rules, Source
from provisioner.identities.queries import PERFORCE, perforce_issuer
from provisioner.lib.storable import shown
from provisioner.sites.models import PerforceServer

SETTING = "P4_SIGN_IN_ADOPTS_ACCOUNTS"
# After some wrong passwords a server delays each login of a user by up to 10 seconds.
# Source: "Login process for the user" of the administrator's guide.
ANSWERS_WITHIN_SECONDS = 15.0


def sign_in_server() -> PerforceServer | None:
    """Return the server that checks passwords; None if none does, or it has no row."""
    name = settings.P4_SIGN_IN_SERVER
    return PerforceServer.objects.filter(name=name).first() if name else None


def as_person(
    found: PerforcePerson, *, groups: Collection[str], name: str = ""
) -> Person:
    """Return a person; `name` is that of an account, where it differs from the user.

    Perforce knows nobody by anything that stays but the name.
    """
    first, _, last = shown(found.full_name).rpartition(" ")
    return Person(
        issuer=perforce_issuer(),
        subject=found.user,
        name=name or found.user,
        email=shown(found.email),
        first_name=first,
        last_name=last,
        groups=frozenset(map(shown, groups)),
    )


def perforce_rules() -> Rules:
    return Rules(
        provider=PERFORCE,
        source="the name of the user",
        setting=SETTING,
        administrators=frozenset(settings.P4_SIGN_IN_ADMINISTRATORS),
        lowest_uid=settings.P4_SIGN_IN_LOWEST_UID,
        adopts_accounts=settings.P4_SIGN_IN_ADOPTS_ACCOUNTS,
        checks_passwords=True,
    )


def perforce_source() -> Source | None:
    """Return how a sync asks Perforce; None unless people sign in with it."""
    if not settings.P4_SIGN_IN_SERVER:
        return None
    return Source(
        issuer=perforce_issuer(),
        name=PERFORCE,
        rules=perforce_rules(),
        find=_find,
        where_to_look="P4_SIGN_IN_SERVER and the rights of its account",
    )


def _find(subjects: Sequence[str]) -> dict[str, Found]:
    """Return those users who are still there.

    Raises: GatewayError.
    """
    gateway = registry.perforce(_server())
    found = gateway.people.find(subjects)
    # Most installations ask for no group, and each person's cost a command.
    asks_for_groups = settings.P4_SIGN_IN_ADMINISTRATORS or Team.objects.exists()
    groups = gateway.people.groups_of(list(found)) if asks_for_groups else {}
    return {
        name: Found(person=as_person(person, groups=groups.get(name, ())))
        for name, person in found.items()
    }


def _server() -> PerforceServer:
    """Raises: Refused."""
    server = sign_in_server()
    if server is None:
        raise Refused(
            f"There is no Perforce server “{settings.P4_SIGN_IN_SERVER}”, which "
            "P4_SIGN_IN_SERVER names.",
            system="perforce",
            operation="users",
        )
    return server
