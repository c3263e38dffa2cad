"""What the directory says of a person, as accounts need it."""

from __future__ import annotations

from django.conf import settings

from provisioner.gateways.directory.entries import DirectoryPerson
from provisioner.gateways.directory.names import comparable
from provisioner.identities.people import Person, Rules
from provisioner.lib.storable import shown


def as_person(found: DirectoryPerson, *, issuer: str) -> Person:
    return Person(
        issuer=issuer,
        subject=found.subject,
        name=found.name,
        email=found.email,
        first_name=shown(found.first_name),
        last_name=shown(found.last_name),
        groups=frozenset(map(shown, found.groups)),
        ids=found.ids,
    )


def directory_rules() -> Rules:
    """Return the rules for accounts of the directory's people.

    A group can be named by its cn, or by its distinguished name: whoever may make
    groups of any name somewhere in the directory then makes no administrators.
    """
    directory = settings.DIRECTORY
    assert directory is not None
    return Rules(
        provider=directory.name,
        source=f"the attribute “{directory.username_attribute}”",
        setting="LDAP_ADOPTS_ACCOUNTS",
        administrators=frozenset(
            comparable(name) if "=" in name else name
            for name in settings.LDAP_ADMINISTRATORS
        ),
        lowest_uid=settings.LDAP_LOWEST_UID,
        adopts_accounts=settings.LDAP_ADOPTS_ACCOUNTS,
        checks_passwords=True,
    )
