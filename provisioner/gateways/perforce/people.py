"""`gateway.people`: who there is at a server, and whether somebody is who they say."""

from __future__ import annotations

from collections.abc import Sequence

from provisioner.gateways.errors import AuthFailed
from provisioner.gateways.perforce.connection import (
    Connection,
    Reply,
    require_no_option,
)
from provisioner.gateways.perforce.errors import BY_PASSWORD
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.types import PerforcePerson

_ASKED_AT_A_TIME = 50
# Other types are of programs.
_OF_PEOPLE = ("", "standard")


class People(Facet):
    """What a server says of its users."""

    def find(self, names: Sequence[str]) -> dict[str, PerforcePerson]:
        """Return the people of these names who exist, by the name that was asked for.

        Where the server ignores case they may be spelled in another. Users who are no
        people, such as replicas, are left out.

        Raises: Refused (a name that the command would take for an option).
        Source: p4 users.
        """
        found: dict[str, PerforcePerson] = {}
        for name in names:
            require_no_option(name)
        with self._connected() as connection:
            for start in range(0, len(names), _ASKED_AT_A_TIME):
                some = names[start : start + _ASKED_AT_A_TIME]
                records = connection.run("users", *some).records
                for record in filter(_is_person, records):
                    # A name with a wildcard finds others, too.
                    found |= {
                        name: _person(record)
                        for name in some
                        if connection.is_same_name(record["User"], name)
                    }
        return found

    def groups_of(self, names: Sequence[str]) -> dict[str, frozenset[str]]:
        """Return the groups that each user is in, also through subgroups.

        Raises: Refused (a name that the command would take for an option).
        Source: p4 groups -i.
        """
        for name in names:
            require_no_option(name)
        with self._connected() as connection:
            return {name: _groups_of(connection, name) for name in names}

    def prove(self) -> frozenset[str]:
        """Verify our own password or ticket; return the groups that we are in.

        1. `login -s` proves a password without a ticket where the server allows that.
        2. Elsewhere `login -p` exchanges it for a ticket, which is kept nowhere.
        3. A user without a password has proven nothing, and is refused.
        4. `groups -i`: the server refuses this while a second factor or a new password
           is due, or if the protections give the user nothing.

        A ticket obtained without `p4 login -a` is valid only on the host that requested
        it. No ticket is logged out: that would end the user's own logins, too.

        Raises: AuthFailed.
        Source: p4 login -s, p4 login -p, p4 groups -i; p4 help logout.
        """
        user = self.account.user
        require_no_option(user)
        with self._connected() as connection:
            reply = connection.run("login", "-s")
            if not self._is_proven(reply, connection):
                raise AuthFailed(
                    f"{user} needs no password, so nobody can prove to be {user}.",
                    system="perforce",
                    operation="login -s",
                )
            return _groups_of(connection, user)

    def _is_proven(self, reply: Reply, connection: Connection) -> bool:
        has_ticket = any(
            int(record.get("TicketExpiration", 0))
            for record in reply.records
            if connection.is_same_name(record["User"], self.account.user)
        )
        by_password = any(message.id == BY_PASSWORD for message in reply.messages)
        return has_ticket or (by_password and not self.account.has_ticket)


def _is_person(record: Record) -> bool:
    return record.get("Type", "") in _OF_PEOPLE


def _person(record: Record) -> PerforcePerson:
    return PerforcePerson(
        user=record["User"],
        email=record.get("Email", "").strip(),
        full_name=record.get("FullName", "").strip(),
    )


def _groups_of(connection: Connection, user: str) -> frozenset[str]:
    records = connection.run("groups", "-i", user).records
    return frozenset(record["group"] for record in records)
