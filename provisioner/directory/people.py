"""What the directory says of a person, as accounts need it."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from provisioner.gateways.directory.entries import DirectoryPerson
from provisioner.gateways.directory.gateway import DirectoryGateway
from provisioner.gateways.directory.names import comparable
from provisioner.identities.people import Found, Person, Rules, Source
from provisioner.lib import clocks
from provisioner.lib.storable import shown
from provisioner.perforce_sign_in.people import perforce_source


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


def sources() -> list[Source]:
    """Return whom a sync asks: the directory, unless people bind themselves there, and
    Perforce.
    """
    of_perforce = perforce_source()
    return [*_of_directory(), *([of_perforce] if of_perforce is not None else [])]


def _of_directory() -> list[Source]:
    directory = settings.DIRECTORY
    if directory is None or not directory.bind_dn:
        return []

    def find(subjects: Sequence[str]) -> dict[str, Found]:
        found = DirectoryGateway(directory).find(subjects, now=clocks.database_now())
        return {
            subject: Found(
                person=as_person(person, issuer=directory.issuer),
                why_disabled=person.why_disabled,
            )
            for subject, person in found.items()
        }

    return [
        Source(
            issuer=directory.issuer,
            name=directory.name,
            rules=directory_rules(),
            find=find,
            where_to_look="LDAP_USER_BASE, LDAP_USER_FILTER and the rights of "
            "LDAP_BIND_DN",
        )
    ]


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
