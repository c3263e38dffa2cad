"""What Cloneyard asks a directory: who this is, and who is still there."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from provisioner.gateways.directory.configuration import Directory
from provisioner.gateways.directory.connection import (
    MOST_LATE_ANSWERS,
    Entry,
    Link,
    connected,
    on_a_server,
)
from provisioner.gateways.directory.entries import (
    ATTRIBUTES,
    DirectoryPerson,
    is_called,
    person_of,
)
from provisioner.gateways.directory.groups import groups_of
from provisioner.gateways.directory.names import (
    bind_name,
    filter_for,
    filter_for_anybody,
    subject_in_filter,
)
from provisioner.gateways.errors import AuthFailed, GatewayError, NotFound, Refused

LOOKED_UP_AT_A_TIME = 50


class Ambiguous(Refused):
    """The filter finds several people of one name: nobody can say who signs in."""


@dataclass(frozen=True)
class DirectoryGateway:
    directory: Directory

    def sign_in(
        self, name: str, password: str, *, now: dt.datetime
    ) -> DirectoryPerson | None:
        """Return the person if name and password are theirs, else None.

        1. Bind, as the service account or as the person.
        2. Find the one entry that is called so.
        3. Bind as that entry with the password, whoever was bound before: an entry of
           somebody else with a similar name is not theirs.
        4. Read its groups, as the service account if there is one.

        Raises: Ambiguous, Unreachable, GatewayError.
        """
        if not name or not password:
            return None
        return on_a_server(
            self.directory,
            partial(self._signed_in, name=name, password=password, now=now),
        )

    def find(
        self, subjects: Sequence[str], *, now: dt.datetime
    ) -> dict[str, DirectoryPerson]:
        """Return those people who are still there, by what identifies them.

        Needs a service account. Raises: GatewayError.
        """
        found: dict[str, DirectoryPerson] = {}
        for start in range(0, len(subjects), LOOKED_UP_AT_A_TIME):
            some = subjects[start : start + LOOKED_UP_AT_A_TIME]
            people = on_a_server(
                self.directory,
                partial(self._found, subjects=some, now=now),
                answers=MOST_LATE_ANSWERS * len(some),
            )
            found |= {person.subject: person for person in people}
        return found

    def problems(self) -> list[str]:
        """Ask every server, and return what is wrong as sentences."""
        said = []
        for url in self.directory.urls:
            try:
                with connected(self.directory, url) as link:
                    said += [f"{url}: {each}" for each in self._remarks(link)]
            except GatewayError as error:
                said.append(f"{url}: {error.sentence}")
        return said

    def _signed_in(
        self, link: Link, *, name: str, password: str, now: dt.datetime
    ) -> DirectoryPerson | None:
        directory = self.directory
        if directory.direct_bind and not directory.bind_dn:
            if not link.bind(bind_name(directory.direct_bind, name), password):
                return None
        else:
            self._bind(link)
        entries = link.search(
            directory.user_base,
            filter_for(directory.user_filter, name),
            *self._attributes(),
            most=2,
        )
        if len(entries) > 1:
            raise Ambiguous(
                f"LDAP_USER_FILTER finds several entries for “{name}”.",
                system="ldap",
                operation="search",
            )
        if not entries or not is_called(directory, entries[0], name):
            return None
        if not link.bind(entries[0].dn, password):
            return None
        if directory.bind_dn:
            self._bind(link)
        return self._person(link, entries[0], name=name, now=now)

    def _found(
        self, link: Link, *, subjects: Sequence[str], now: dt.datetime
    ) -> list[DirectoryPerson]:
        self._bind(link)
        attribute = self.directory.id_attribute
        each = "".join(
            f"({attribute}={subject_in_filter(attribute, subject)})"
            for subject in subjects
        )
        entries = link.search(
            self.directory.user_base,
            f"(&{filter_for_anybody(self.directory.user_filter)}(|{each}))",
            *self._attributes(),
        )
        people = [self._person(link, entry, name="", now=now) for entry in entries]
        return [person for person in people if person is not None]

    def _person(
        self, link: Link, entry: Entry, *, name: str, now: dt.datetime
    ) -> DirectoryPerson | None:
        groups = groups_of(link, self.directory, entry)
        return person_of(self.directory, entry, name=name, groups=groups, now=now)

    def _bind(self, link: Link) -> None:
        """Raises: AuthFailed."""
        if not link.bind(self.directory.bind_dn, self.directory.bind_password):
            raise AuthFailed(
                "The directory does not accept LDAP_BIND_DN with LDAP_BIND_PASSWORD.",
                system="ldap",
                operation="bind",
            )

    def _remarks(self, link: Link) -> list[str]:
        """Return what is wrong with the settings, as one server sees them."""
        directory = self.directory
        if not directory.bind_dn:
            return []
        self._bind(link)
        everybody = filter_for_anybody(directory.user_filter)
        try:
            people = link.search(
                directory.user_base, everybody, *self._attributes(), most=1
            )
        except NotFound:
            return ["LDAP_USER_BASE does not exist, or LDAP_BIND_DN may not read it."]
        if not people:
            return [
                "LDAP_USER_FILTER finds nobody below LDAP_USER_BASE, or LDAP_BIND_DN "
                "may not read them."
            ]
        remarks = [
            f"{setting} names “{attribute}”, which {people[0].dn} does not have."
            for setting, attribute in (
                ("LDAP_ID_ATTRIBUTE", directory.id_attribute),
                ("LDAP_USERNAME_ATTRIBUTE", directory.username_attribute),
            )
            if not people[0].values.get(attribute.lower())
        ]
        if directory.groups in ("search", "chain"):
            try:
                link.search(directory.group_base, "(cn=*)", "cn", most=1)
            except NotFound:
                remarks.append(
                    "LDAP_GROUP_BASE does not exist, or LDAP_BIND_DN may not read it."
                )
        return remarks

    def _attributes(self) -> list[str]:
        directory = self.directory
        return [directory.id_attribute, directory.username_attribute, *ATTRIBUTES]
