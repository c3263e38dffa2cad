"""One Perforce server, as one user: every verb that Cloneyard uses.

`gateway.clients`, `files`, `changes`, `shelves`, `people`, `processes`,
`configuration`, `log`, `timing`, `archives` and `benchmarks` hold the verbs of each
kind; what concerns the server and its users is here. Every method may raise
Unreachable, Busy (resource pressure, or a limit that a smaller request would stay
below) and AuthFailed. Each docstring lists only what else it raises.

Methods marked "Local files" read or write below the client's Root. They must run where
the namespace is mounted, as the owner of the files: see hosts/run_as.py. All others
talk to the server only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from provisioner.gateways.errors import AuthFailed
from provisioner.gateways.perforce.archives import Archives
from provisioner.gateways.perforce.benchmarks import Benchmarks
from provisioner.gateways.perforce.changes import Changes
from provisioner.gateways.perforce.clients import Clients
from provisioner.gateways.perforce.configuration import Configuration
from provisioner.gateways.perforce.connection import (
    Connection,
    TicketHolder,
    require_no_option,
)
from provisioner.gateways.perforce.errors import (
    NO_CONFIGURABLES,
    NO_PERMISSION,
    NO_SUCH_USER,
    PROTECTIONS_EMPTY,
)
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.files import Files
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.log import Log
from provisioner.gateways.perforce.people import People
from provisioner.gateways.perforce.processes import Processes
from provisioner.gateways.perforce.protections import Protection, Protections
from provisioner.gateways.perforce.shelves import Shelves
from provisioner.gateways.perforce.timing import Timing
from provisioner.gateways.perforce.types import TICKET, PerforceAccount, ServerInfo

_LIMITS = ("MaxResults", "MaxScanRows", "MaxLockTime")


class PerforceGateway(Facet):
    """One Perforce server, spoken to as one user."""

    def __init__(
        self,
        account: PerforceAccount,
        *,
        holder: TicketHolder | None = None,
        connection: Connection | None = None,
    ) -> None:
        holder = holder or TicketHolder()
        super().__init__(account, holder=holder, connection=connection)
        self.clients = Clients(account, holder=holder, connection=connection)
        self.files = Files(account, holder=holder, connection=connection)
        self.changes = Changes(account, holder=holder, connection=connection)
        self.shelves = Shelves(account, holder=holder, connection=connection)
        self.people = People(account, holder=holder, connection=connection)
        self.processes = Processes(account, holder=holder, connection=connection)
        self.configuration = Configuration(
            account, holder=holder, connection=connection
        )
        self.log = Log(account, holder=holder, connection=connection)
        self.timing = Timing(account, holder=holder, connection=connection)
        self.archives = Archives(account, holder=holder, connection=connection)
        self.benchmarks = Benchmarks(account, holder=holder, connection=connection)

    @contextmanager
    def at_once(self) -> Iterator[PerforceGateway]:
        """Give a gateway for a few verbs that follow each other at once, in a thread.

        Those that name no client of their own share one connection.
        """
        with self._connected() as connection:
            yield PerforceGateway.on(connection)

    def get_info(self) -> ServerInfo:
        """Return version, case handling and services: the cheapest connection test.

        Source: p4 info.
        """
        with self._connected() as connection:
            [record] = connection.run("info").records
        return ServerInfo(
            version=record.get("serverVersion", ""),
            is_case_sensitive=record.get("caseHandling", "sensitive") == "sensitive",
            is_unicode="unicode" in record,
            server_id=record.get("ServerID", ""),
            services=record.get("serverServices", ""),
            replica_of=record.get("replica", ""),
            is_proxied=any(tag.startswith("proxy") for tag in record),
            is_brokered=any(tag.startswith("broker") for tag in record),
        )

    def setting(self, name: str) -> str:
        """Return the value of a configurable, "" if it is not set.

        Raises: NotPermitted (only super and operator users may ask).
        Source: p4 configure show.
        """
        with self._connected() as connection:
            records = connection.run(
                *("configure", "show", name), accepted={NO_CONFIGURABLES}
            ).records
        # The first one listed is in effect.
        return str(records[0].get("Value", "")) if records else ""

    # our account

    def check_login(self) -> None:
        """Verify that our account is logged in.

        Raises: AuthFailed.
        Source: p4 login -s.
        """
        with self._connected() as connection:
            connection.run("login", "-s")

    def access_level(self) -> str:
        """Return the highest access level that our account has on any path.

        Such as "super", "admin" or "write"; "super" if the protections table is empty.

        Source: p4 protects -m.
        """
        with self._connected() as connection:
            reply = connection.run("protects", "-m", accepted={PROTECTIONS_EMPTY})
        return str(reply.records[0]["permMax"]) if reply.records else "super"

    def ticket_seconds(self) -> int:
        """Return the remaining lifetime of our account's ticket, and so that it is one.

        A ticket obtained without `p4 login -a` is valid only on the host that
        requested it.

        Raises: AuthFailed (also for a password, and for a user who needs no ticket:
        the server then reports no expiration, which proves nothing).
        Source: p4 login -s.
        """
        user = self.account.user
        with self._connected() as connection:
            records = connection.run("login", "-s").records
            seconds = [
                int(record.get("TicketExpiration", 0))
                for record in records
                if connection.is_same_name(record["User"], user)
            ]
        if not any(seconds):
            raise AuthFailed(
                f"This is not a valid ticket of {user}.",
                system="perforce",
                operation="login -s",
            )
        return max(seconds)

    # other users

    def user_ticket(self, user: str) -> str | None:
        """Return a ticket to act as this user, None if our account may not have one.

        None also for an unknown user; "" if the user needs no ticket. It is valid on
        the requesting host only. It is a secret: keep it in memory while it is used.

        Raises: Refused (a name that the command would take for an option).
        Source: p4 login -p user, which needs super.
        """
        account = self.account
        refused = {NO_PERMISSION, NO_SUCH_USER}
        with self._connected() as connection:
            if user == account.user and account.has_ticket:
                return account.password
            require_no_option(user)
            password = account.password if user == account.user else ""
            reply = connection.run("login", "-p", user, text=password, accepted=refused)
        if any(message.id in refused for message in reply.messages):
            return None
        tickets = [t.strip() for t in reply.texts if TICKET.fullmatch(t.strip())]
        return tickets[-1] if tickets else ""

    def spelling_of(self, user: str) -> str | None:
        """Return a user name as the server spells it, None for an unknown user.

        The two differ where the server ignores case.

        Raises: Refused (a name that the command would take for an option).
        Source: p4 users.
        """
        record = self._user(user)
        return None if record is None else str(record["User"])

    def email_of(self, user: str) -> str:
        """Return the address in a user's spec as typed, "" for an unknown user.

        Raises: Refused (a name that the command would take for an option).
        Source: p4 users.
        """
        record = self._user(user)
        return "" if record is None else str(record.get("Email", "")).strip()

    def _user(self, user: str) -> Record | None:
        require_no_option(user)
        with self._connected() as connection:
            records = connection.run("users", user).records
            same = (r for r in records if connection.is_same_name(r["User"], user))
            return next(same, None)

    def limits_of(self, user: str) -> dict[str, int]:
        """Return the limits that a user's groups set, by field of the group form.

        Fields without a limit are left out. With several groups the highest value
        counts, and "unset" does not.

        Raises: Refused (a name that the command would take for an option).
        Source: p4 groups -i user, p4 group -o; p4 help maxresults.
        """
        require_no_option(user)
        with self._connected() as connection:
            forms = _groups_of(connection, user)
        limits = {}
        for field in _LIMITS:
            given = {form.get(field, "unset") for form in forms} - {"unset"}
            if given and "unlimited" not in given:
                limits[field] = max(map(int, given))
        return limits

    def protections_of(self, user: str, *, host: str = "") -> Protections:
        """Return the protections that apply to a user, directly and through groups.

        With `host`, an IP address: as they apply to connections from there. No path is
        given, so that lines about parts of a path are not missed. One round trip.

        Raises: Refused (our account may not ask about others; a name that the command
        would take for an option).
        Source: p4 protects -u, which needs super; or admin, where
        dm.protects.allow.admin is 1.
        """
        require_no_option(user)
        asked = ("protects", "-u", user, *(("-h", host) if host else ()))
        with self._connected() as connection:
            reply = connection.run(*asked, accepted={PROTECTIONS_EMPTY})
            is_case_sensitive = connection.is_case_sensitive
        return Protections(
            lines=tuple(_protection(record) for record in reply.records),
            is_case_sensitive=is_case_sensitive,
            is_unprotected=any(m.id == PROTECTIONS_EMPTY for m in reply.messages),
            is_for_one_host=bool(host),
        )


def _groups_of(connection: Connection, user: str) -> list[Record]:
    records = connection.run("groups", "-i", user).records
    return [
        connection.run("group", "-o", name).records[0]
        for name in sorted({record["group"] for record in records})
    ]


def _protection(record: Record) -> Protection:
    return Protection(
        level=record["perm"],
        host=record["host"],
        path=record["depotFile"],
        is_exclusion="unmap" in record,
    )
