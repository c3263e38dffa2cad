"""`gateway.clients`: client specs, and what their views map."""

from __future__ import annotations

import dataclasses
import datetime as dt
import time
from collections.abc import Sequence

from provisioner.gateways.errors import Busy, Refused
from provisioner.gateways.perforce.batching import batches
from provisioner.gateways.perforce.changes.pending import PendingChanges
from provisioner.gateways.perforce.connection import NEUTRAL_CLIENT, Connection
from provisioner.gateways.perforce.errors import (
    CLIENT_HAS_OPENED_FILES,
    CLIENT_HAS_PENDING_CHANGES,
    NO_CONFIGURABLES,
    NO_SUCH_CLIENT,
    ClientHasOpenedFiles,
    ClientHasPendingChanges,
    NotPermitted,
)
from provisioner.gateways.perforce.facet import Facet, form_of
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.paths import escape_path
from provisioner.gateways.perforce.specs import ONE_LINE_FIELDS, render_client_spec
from provisioner.gateways.perforce.types import ClientSpec, ListedClient
from provisioner.lib.storable import as_named, shown

_WRITEABLE = "writeable"
# How often a use of a client is noted, in seconds, if nobody has set it.
_ACCESS_NOTED_EVERY = 300
_SPECIAL_TYPES = ("readonly", "partitioned", "partitioned-jnl")


class Clients(Facet):
    """Client specs of one Perforce server."""

    def types(self) -> tuple[str, ...]:
        """Return the types that a new client may have, of those that Cloneyard uses.

        "writeable", then any of "readonly", "partitioned" and "partitioned-jnl".
        Creates nothing: a server that lacks a type, or the setting for it, refuses to
        show the form of a new client with that type.

        Raises: NotPermitted.
        Source: p4 client -T type -o.
        """
        with self._connected() as connection:
            special = [kind for kind in _SPECIAL_TYPES if _has_type(connection, kind)]
        return (_WRITEABLE, *special)  # older servers have no name for "writeable"

    def find(self, name: str) -> ClientSpec | None:
        """Return the client spec, or None if the server has no such client.

        Asks `p4 clients -e` first: `client -o` answers a default for an unknown name.

        Source: p4 clients -a -e, p4 client -o.
        """
        with self._connected() as connection:
            listed = connection.run("clients", "-a", "-e", name).records
            listed = [r for r in listed if connection.is_same_name(r["client"], name)]
            if not listed:
                return None
            [form] = connection.run("client", "-o", name).records
        if "Update" not in form:
            return None  # deleted in between: this is the default for a new client
        return _spec(form, times=listed[0])

    def find_all(self, *, name_filter: str) -> list[ClientSpec]:
        """Return all clients whose name matches the pattern, of every server.

        Their view, host and submit options are not filled in. Clients bound to edge
        servers are included.

        Source: p4 clients -a -e.
        """
        with self._connected() as connection:
            records = connection.run(
                "clients", "-a", "-e", name_filter, is_bulk=True
            ).records
        return [
            _spec({**record, "Client": record["client"]}, times=record)
            for record in records
        ]

    def all_listed(self) -> list[ListedClient]:
        """Return what a listing says of all clients that this server is used with.

        Those bound to another server are left out: their opened files and have lists
        are there. It names none, so no Access date moves.

        Source: p4 help clients (-a lists others' too); p4 help client, which commands
        update the date.
        """
        found: list[ListedClient] = []
        with self._connected() as connection:
            connection.run(
                "clients",
                each=lambda record: found.append(_listed(record)),
                is_bulk=True,
            )
        return found

    def views_of_just_used(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the views of those clients whose Access date does not move by that.

        To show a form is a use of its client, which the server notes every so many
        seconds only. So a form is shown within half of these after the client was used
        by somebody else. Clocks may differ by as much.

        Raises: NotPermitted (only super and operator users may ask for the interval).
        Source: p4 clients -a -e, p4 client -o; dm.domain.accessupdate.
        """
        views: dict[str, tuple[str, ...]] = {}
        with self._connected() as connection:
            shown_settings = connection.run(
                *("configure", "show", "dm.domain.accessupdate"),
                accepted={NO_CONFIGURABLES},
            ).records
            value = shown_settings[0].get("Value", "") if shown_settings else ""
            every = int(value) if value.isdecimal() else _ACCESS_NOTED_EVERY
            for name in names:
                records = connection.run("clients", "-a", "-e", name).records
                same = [r for r in records if r["client"] == name]
                if not same or abs(time.time() - int(same[0]["Access"])) > every / 2:
                    continue
                [form] = connection.run("client", "-o", name).records
                if "Update" in form:
                    views[name] = tuple(form.get("View", ()))
        return views

    def save(self, spec: ClientSpec, *, past_lock: bool = False) -> None:
        """Create or change a client spec. Safe to repeat.

        `past_lock` also changes a client that its owner has locked; that needs admin.

        Raises: Refused (locked by another owner, bad view, type change, limits; a value
        that is not one line).
        Source: p4 client -i; p4 client -f -i.
        """
        flags = ("-f", "-i") if past_lock else ("-i",)
        try:
            form = as_named(render_client_spec(spec))
        except ValueError as error:
            operation = "client -i"
            raise Refused(str(error), system="perforce", operation=operation) from error
        with self._connected() as connection:
            connection.run("client", *flags, text=form)

    def delete(
        self,
        name: str,
        *,
        keep_shelves: bool = False,
        server_id: str = "",
        as_seen: ClientSpec | None = None,
    ) -> None:
        """Delete a client spec, never a shelf. Safe to repeat.

        With `as_seen`, a client whose spec has changed since is kept, whatever its
        Access date: the decision to delete it may no longer hold.

        Without `keep_shelves` nothing is forced. With it, for clients whose work is
        rescued and recorded, shelves are kept and a lock is ignored. Opened files, and
        pending changes without a shelf, are still refused, as force would drop them.
        Work on an edge server cannot be checked from here: a client that is bound to
        one is deleted only if `server_id` names that server.

        Raises: ClientHasOpenedFiles, ClientHasPendingChanges, ClientHasShelves (all
        InUse), ClientIsLocked, ClientOfOtherServer, NotPermitted (all Refused), Busy
        (the spec has changed).
        Source: p4 client -d; p4 client -d -f -Fs [--serverid=X].
        """
        if as_seen is not None:
            self._require_unchanged(as_seen)
        with self._connected() as connection:
            flags: tuple[str, ...] = ()
            if keep_shelves:
                _require_no_work(connection, client=name)
                flags = ("-f", "-Fs")
            if keep_shelves and server_id:
                flags += (f"--serverid={server_id}",)
            connection.run(
                *("client", "-d", *flags, name),
                accepted={NO_SUCH_CLIENT},
                is_bulk=True,
            )

    def _require_unchanged(self, seen: ClientSpec) -> None:
        found = self.find(seen.name)
        if found is not None and found != dataclasses.replace(
            seen, accessed_at=found.accessed_at
        ):
            raise Busy(
                f"Client {seen.name} was changed meanwhile. It will be checked again.",
                system="perforce",
                operation="client -d",
            )

    def mapped_paths(self, client: str, paths: Sequence[str]) -> set[str]:
        """Return those of these local paths that the client's view maps.

        Raises: NotFound (client).
        Source: p4 where.
        """
        mapped: set[str] = set()
        with self._connected(client) as connection:
            form_of(connection, client)
            for some in batches([p for p in paths if connection.can_name(p)]):
                records = connection.run(
                    "where", *map(escape_path, some), is_bulk=True
                ).records
                mapped |= {r["path"] for r in records if "unmap" not in r}
        return mapped & set(paths)


def _has_type(connection: Connection, kind: str) -> bool:
    try:
        reply = connection.run("client", "-T", kind, "-o", NEUTRAL_CLIENT)
    except NotPermitted:
        raise
    except Refused:
        return False
    return any(record.get("Type") == kind for record in reply.records)


def _require_no_work(connection: Connection, *, client: str) -> None:
    """Refuse to force a deletion that would drop somebody's work.

    Raises: ClientHasOpenedFiles, ClientHasPendingChanges.
    """
    changes = PendingChanges.on(connection)
    if changes.list_opened(client):
        raise ClientHasOpenedFiles(
            f"Client {client} has opened files.",
            system="perforce",
            operation="client -d",
            remote_code=str(CLIENT_HAS_OPENED_FILES),
        )
    if not all(change.is_shelved for change in changes.list_pending(client)):
        raise ClientHasPendingChanges(
            f"Client {client} has pending changes without a shelf.",
            system="perforce",
            operation="client -d",
            remote_code=str(CLIENT_HAS_PENDING_CHANGES),
        )


def _spec(fields: Record, *, times: Record) -> ClientSpec:
    """Read a form, or a row of `p4 clients`: the times of a form have no zone."""
    return ClientSpec(
        **{name: fields.get(tag, "") for tag, name in ONE_LINE_FIELDS},
        description=shown(fields.get("Description", "")).rstrip("\n"),
        server_id=fields.get("ServerID", ""),
        view=tuple(fields.get("View", ())),
        updated_at=_moment(times.get("Update")),
        accessed_at=_moment(times.get("Access")),
    )


def _listed(record: Record) -> ListedClient:
    return ListedClient(
        name=record["client"],
        owner=record.get("Owner", ""),
        host=record.get("Host", ""),
        type=record.get("Type", ""),
        description=shown(record.get("Description", "")),
        is_locked="locked" in record.get("Options", "").split(),
        updated_at=_moment(record.get("Update")),
        accessed_at=_moment(record.get("Access")),
    )


def _moment(seconds: str | None) -> dt.datetime | None:
    return dt.datetime.fromtimestamp(int(seconds), tz=dt.UTC) if seconds else None
