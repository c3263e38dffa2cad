"""Keeps the contract of gateway.py with Perforce's own client library."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from provisioner.gateways.errors import Busy, NotFound
from provisioner.gateways.perforce import carrying, pending, people, surveying
from provisioner.gateways.perforce.abilities import client_types
from provisioner.gateways.perforce.connection import (
    NEUTRAL_CLIENT,
    Connection,
    TicketHolder,
    connected,
    require_no_option,
    ticket_of,
)
from provisioner.gateways.perforce.errors import (
    CHANGE_NOT_SHELVED,
    NO_CONFIGURABLES,
    NO_SHELF_TO_DELETE,
    NO_SUCH_CHANGE,
    NO_SUCH_CLIENT,
    PROTECTIONS_EMPTY,
)
from provisioner.gateways.perforce.flushing import flush
from provisioner.gateways.perforce.generations import (
    count_out_of_sync,
    local_paths,
    pinned_files,
    restore_files,
)
from provisioner.gateways.perforce.have import HaveDigest
from provisioner.gateways.perforce.ignoring import ignore_file
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.paths import (
    client_path_to_local,
    escape_path,
)
from provisioner.gateways.perforce.pending import form_of
from provisioner.gateways.perforce.populating import populate
from provisioner.gateways.perforce.progress import SyncCounter
from provisioner.gateways.perforce.protections import Protection, Protections
from provisioner.gateways.perforce.reconciling import differences
from provisioner.gateways.perforce.restoring import (
    flush_to,
    have_differences,
    have_revisions,
    reopen,
    unshelve,
)
from provisioner.gateways.perforce.shelving import batches, shelve_opened
from provisioner.gateways.perforce.specs import render_client_spec
from provisioner.gateways.perforce.submitted import (
    submitted_after,
    submitted_to,
    submitted_under,
)
from provisioner.gateways.perforce.syncing import sync, tree_size
from provisioner.gateways.perforce.types import (
    ClientSpec,
    HaveList,
    LockUse,
    NewestWork,
    OpenedFile,
    Part,
    PendingChange,
    PerforceAccount,
    PopulateReport,
    ReconcileFinding,
    ReopenReport,
    ServerInfo,
    Shelf,
    ShelvedFile,
    ShelveReport,
    SubmittedBatch,
    SubmittedChange,
    SyncProgress,
    SyncReport,
    TreeSize,
    ViewSurvey,
)
from provisioner.lib.storable import as_named, shown


class P4PerforceGateway:
    """One Perforce server as one user; may be used from any thread at any time.

    Each call has its own connection, which costs less than a millisecond.
    """

    def __init__(self, account: PerforceAccount) -> None:
        self._account = account
        self._holder = TicketHolder()

    def get_info(self) -> ServerInfo:
        with self._connected() as connection:
            [record] = connection.run("info").records
        return ServerInfo(
            version=record.get("serverVersion", ""),
            is_case_sensitive=record.get("caseHandling", "sensitive") == "sensitive",
            is_unicode="unicode" in record,
            server_id=record.get("ServerID", ""),
            services=record.get("serverServices", ""),
        )

    def client_types(self) -> tuple[str, ...]:
        with self._connected() as connection:
            return client_types(connection)

    def check_login(self) -> None:
        with self._connected() as connection:
            connection.run("login", "-s")

    def access_level(self) -> str:
        with self._connected() as connection:
            reply = connection.run("protects", "-m", accepted={PROTECTIONS_EMPTY})
        return str(reply.records[0]["permMax"]) if reply.records else "super"

    def limits_of(self, user: str) -> dict[str, int]:
        require_no_option(user)
        with self._connected() as connection:
            return people.limits_of(connection, user)

    def setting(self, name: str) -> str:
        with self._connected() as connection:
            records = connection.run(
                *("configure", "show", name), accepted={NO_CONFIGURABLES}
            ).records
        # The first is the one that counts.
        return str(records[0].get("Value", "")) if records else ""

    def ticket_seconds(self) -> int:
        with self._connected() as connection:
            return people.ticket_seconds(connection, self._account.user)

    def spelling_of(self, user: str) -> str | None:
        require_no_option(user)
        with self._connected() as connection:
            return people.spelling_of(connection, user)

    def email_of(self, user: str) -> str:
        require_no_option(user)
        with self._connected() as connection:
            return people.email_of(connection, user)

    def protections_of(self, user: str, *, host: str = "") -> Protections:
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

    def user_ticket(self, user: str) -> str | None:
        with self._connected() as connection:
            return ticket_of(connection, user=user, account=self._account)

    def find_client(self, name: str) -> ClientSpec | None:
        with self._connected() as connection:
            listed = connection.run("clients", "-a", "-e", name).records
            listed = [r for r in listed if connection.is_same_name(r["client"], name)]
            if not listed:
                return None
            [form] = connection.run("client", "-o", name).records
        if "Update" not in form:
            return None  # deleted meanwhile, so this is the default of a new one
        return _spec(form, times=listed[0])

    def list_clients(self, *, name_filter: str) -> list[ClientSpec]:
        with self._connected() as connection:
            records = connection.run(
                "clients", "-a", "-e", name_filter, is_bulk=True
            ).records
        return [
            _spec({**record, "Client": record["client"]}, times=record)
            for record in records
        ]

    def save_client(self, spec: ClientSpec, *, past_lock: bool = False) -> None:
        flags = ("-f", "-i") if past_lock else ("-i",)
        with self._connected() as connection:
            connection.run("client", *flags, text=as_named(render_client_spec(spec)))

    def delete_client(
        self,
        name: str,
        *,
        keep_shelves: bool = False,
        server_id: str = "",
        as_seen: ClientSpec | None = None,
    ) -> None:
        if as_seen is not None:
            self._require_unchanged(as_seen)
        with self._connected() as connection:
            flags: tuple[str, ...] = ()
            if keep_shelves:
                pending.require_no_work(connection, client=name)
                flags = ("-f", "-Fs")
            if keep_shelves and server_id:
                flags += (f"--serverid={server_id}",)
            connection.run(
                *("client", "-d", *flags, name),
                accepted={NO_SUCH_CLIENT},
                is_bulk=True,
            )

    def _require_unchanged(self, seen: ClientSpec) -> None:
        found = self.find_client(seen.name)
        if found is not None and found != dataclasses.replace(
            seen, accessed_at=found.accessed_at
        ):
            raise Busy(
                f"The client {seen.name} was changed meanwhile; it is looked at again.",
                system="perforce",
                operation="client -d",
            )

    def latest_change(self, paths: tuple[str, ...]) -> int:
        with self._connected() as connection:
            records = connection.run(
                "changes", "-m", "1", "-s", "submitted", *paths, is_bulk=bool(paths)
            ).records
        return int(records[0]["change"]) if records else 0

    def submitted_after(self, change: int, *, at_most: int) -> SubmittedBatch:
        with self._connected() as connection:
            return submitted_after(connection, change=change, at_most=at_most)

    def submitted_under(
        self, paths: tuple[str, ...], *, above: int, upto: int, at_most: int
    ) -> SubmittedBatch:
        with self._connected() as connection:
            return submitted_under(
                connection, paths=paths, above=above, upto=upto, at_most=at_most
            )

    def submitted_to(
        self, client: str, *, above: int, upto: int, at_most: int
    ) -> list[SubmittedChange]:
        with self._connected(client) as connection:
            form_of(connection, client)
            return submitted_to(
                connection, client=client, above=above, upto=upto, at_most=at_most
            )

    def survey_view(
        self, view: Sequence[str], *, stream: str = "", most_names: int
    ) -> ViewSurvey:
        with self._connected() as connection:
            lines = view
            if stream:
                lines = surveying.generated_view(
                    connection, stream, client=NEUTRAL_CLIENT
                )
            return surveying.survey_view(connection, lines, most_names=most_names)

    def is_submitted(self, change: int) -> bool:
        with self._connected() as connection:
            return _is_submitted(connection, change)

    def has_files(self, paths: tuple[str, ...], *, change: int) -> bool:
        with self._connected() as connection:
            return any(
                connection.run(
                    *("files", "-e", "-m", "1", f"{path}@{change}"), is_bulk=True
                ).records
                for path in paths
            )

    def find_file(
        self,
        paths: tuple[str, ...],
        *,
        change: int,
        is_wanted: Callable[[str], bool],
    ) -> str | None:
        found: list[str] = []

        def look_at(record: Record) -> None:
            if not found and is_wanted(record["depotFile"]):
                found.append(record["depotFile"])

        with self._connected() as connection:
            for some in batches(list(paths)):
                connection.run(
                    "files",
                    "-e",
                    *(f"{path}@{change}" for path in some),
                    each=look_at,
                    is_bulk=True,
                )
                if found:
                    return found[0]
        return None

    def flush(
        self,
        client: str,
        *,
        change: int,
        parts: Sequence[Part] = (),
        in_batches: bool = False,
        on_command: Callable[[LockUse], None] | None = None,
    ) -> None:
        with self._connected(client, tracks=on_command is not None) as connection:
            _require_submitted(connection, change)
            flush(
                connection,
                client=client,
                change=change,
                parts=parts,
                in_batches=in_batches,
                on_command=on_command,
            )

    def have_list(self, client: str) -> HaveList:
        digest = HaveDigest()
        with self._connected(client) as connection:
            connection.run(
                "have",
                each=lambda record: digest.add(
                    record["depotFile"], revision=record["haveRev"]
                ),
                is_bulk=True,
            )
        return digest.result()

    def list_opened(self, client: str) -> list[OpenedFile]:
        with self._connected() as connection:
            return pending.list_opened(connection, client=client)

    def list_pending_changes(self, client: str) -> list[PendingChange]:
        with self._connected() as connection:
            return pending.list_pending_changes(connection, client=client)

    def list_shelved_files(self, change: int) -> list[ShelvedFile]:
        with self._connected() as connection:
            return pending.list_shelved_files(connection, change=change)

    def newest_work(self, client: str, *, above: int) -> NewestWork:
        def newest(connection: Connection, status: str) -> dt.datetime | None:
            # Submitted changes have no index by client: all down to -e are read.
            records = connection.run(
                *("changes", "-m", "1", "-e", str(above + 1)),
                *("-c", client, "-s", status),
            ).records
            return _moment(records[0]["time"]) if records else None

        with self._connected() as connection:
            return NewestWork(
                submitted_at=newest(connection, "submitted"),
                shelved_at=newest(connection, "shelved"),
                pending_at=newest(connection, "pending"),
            )

    def count_opened_by(self, user: str) -> dict[str, int]:
        require_no_option(user)
        opened: Counter[str] = Counter()
        with self._connected() as connection:
            connection.run(
                *("opened", "-a", "-u", user),
                each=lambda record: opened.update([record["client"]]),
                is_bulk=True,
            )
        return dict(opened)

    def revert_server_side(self, client: str) -> None:
        with self._connected(client) as connection:
            connection.run("revert", "-k", "-C", client, "//...", is_bulk=True)

    def delete_pending_change(self, change: int, *, delete_shelf: bool) -> None:
        with self._connected() as connection:
            if delete_shelf:
                connection.run(
                    "shelve",
                    "-d",
                    "-f",
                    "-c",
                    str(change),
                    accepted={CHANGE_NOT_SHELVED, NO_SHELF_TO_DELETE, NO_SUCH_CHANGE},
                    is_bulk=True,
                )
            connection.run("change", "-d", "-f", str(change), accepted={NO_SUCH_CHANGE})

    def sync(
        self,
        client: str,
        *,
        change: int,
        on_progress: Callable[[SyncProgress], None],
        replace_leftovers: bool = False,
        parts: Sequence[Part] = (),
        in_batches: bool = False,
        expected: TreeSize | None = None,
        on_command: Callable[[LockUse], None] | None = None,
    ) -> SyncReport:
        with self._connected(client, tracks=on_command is not None) as connection:
            _require_submitted(connection, change)
            return sync(
                connection,
                client=client,
                change=change,
                parts=parts,
                threads=self._account.sync_connections,
                replace_leftovers=replace_leftovers,
                in_batches=in_batches,
                progress=SyncCounter(on_progress, expected=expected),
                on_command=on_command,
            )

    def tree_size(self, client: str, *, change: int) -> TreeSize:
        with self._connected(client) as connection:
            _require_submitted(connection, change)
            return tree_size(connection, client=client, change=change)

    def count_out_of_sync(
        self, client: str, *, change: int, parts: Sequence[Part] = ()
    ) -> int:
        with self._connected(client) as connection:
            _require_submitted(connection, change)
            return count_out_of_sync(
                connection, client=client, change=change, parts=parts
            )

    def populate(
        self,
        client: str,
        *,
        since: int,
        change: int,
        on_progress: Callable[[int, int], None],
    ) -> PopulateReport:
        with self._connected(client) as connection:
            _require_submitted(connection, change)
            return populate(
                connection,
                client=client,
                since=since,
                change=change,
                on_progress=on_progress,
            )

    def restore_files(self, client: str, *, in_batches: bool = False) -> list[str]:
        with self._connected(client) as connection:
            return restore_files(connection, client=client, in_batches=in_batches)

    def local_paths(self, client: str, each: Callable[[str], None]) -> None:
        with self._connected(client) as connection:
            local_paths(connection, each)

    def reconcile_preview(
        self,
        client: str,
        *,
        untracked: bool,
        ignore: tuple[str, ...] = (),
        in_batches: bool = False,
    ) -> list[ReconcileFinding]:
        with self._connected(client) as connection:
            root = str(form_of(connection, client)["Root"])
            with ignore_file(ignore, root=root) as path:
                connection.use_ignore_file(path)
                found = differences(
                    connection,
                    client=client,
                    untracked_below=root if untracked else "",
                    in_batches=in_batches,
                )
                return [_finding(record, client=client, root=root) for record in found]

    def mapped_paths(self, client: str, paths: Sequence[str]) -> set[str]:
        mapped: set[str] = set()
        with self._connected(client) as connection:
            form_of(connection, client)
            for some in batches([p for p in paths if connection.can_name(p)]):
                records = connection.run(
                    "where", *map(escape_path, some), is_bulk=True
                ).records
                mapped |= {r["path"] for r in records if "unmap" not in r}
        return mapped & set(paths)

    def shelve_opened(self, client: str, *, workspace: str) -> ShelveReport:
        with self._connected(client) as connection:
            return shelve_opened(
                connection,
                client=client,
                user=self._account.user,
                workspace=workspace,
            )

    def have_revisions(self, client: str, each: Callable[[str, int], None]) -> int:
        with self._connected(client) as connection:
            return have_revisions(connection, each)

    def have_differences(
        self, client: str, *, change: int, parts: Sequence[Part] = ()
    ) -> list[tuple[str, int]]:
        with self._connected(client) as connection:
            _require_submitted(connection, change)
            pinned = pinned_files(client, change=change, parts=parts)
            return have_differences(connection, client=client, pinned=pinned)

    def flush_to(self, client: str, revisions: Iterable[tuple[str, int]]) -> None:
        with self._connected(client) as connection:
            flush_to(connection, revisions)

    def reopen(
        self,
        client: str,
        files: Sequence[OpenedFile],
        *,
        descriptions: Mapping[str, str],
        shelves: Sequence[Shelf] = (),
        empty_changes: Sequence[str] = (),
    ) -> ReopenReport:
        with self._connected(client) as connection:
            return reopen(
                connection,
                client=client,
                user=self._account.user,
                files=files,
                descriptions=descriptions,
                shelves=shelves,
                empty_changes=empty_changes,
            )

    def unshelve(
        self, client: str, *, change: int, into: str, files: Sequence[str] = ()
    ) -> ReopenReport:
        with self._connected(client) as connection:
            return unshelve(
                connection, client=client, change=change, into=into, files=files
            )

    def as_edits(self, client: str, paths: Sequence[str]) -> list[OpenedFile]:
        with self._connected(client) as connection:
            form_of(connection, client)
            return carrying.as_edits(
                connection, client=client, user=self._account.user, paths=paths
            )

    def to_resolve(self, client: str) -> list[carrying.ToResolve]:
        with self._connected(client) as connection:
            form_of(connection, client)
            return carrying.to_resolve(connection, client=client)

    def shelve_copies(
        self,
        client: str,
        *,
        source: str,
        files: Sequence[OpenedFile],
        descriptions: Mapping[str, str],
    ) -> carrying.CopyReport:
        with self._connected(client) as connection:
            return carrying.shelve_copies(
                connection,
                client=client,
                source=source,
                user=self._account.user,
                files=files,
                descriptions=descriptions,
            )

    def open_copies(
        self,
        client: str,
        *,
        shelves: Sequence[Shelf],
        descriptions: Mapping[str, str],
        label: str,
    ) -> carrying.OpenReport:
        with self._connected(client) as connection:
            form_of(connection, client)
            return carrying.open_copies(
                connection,
                client=client,
                user=self._account.user,
                shelves=shelves,
                descriptions=descriptions,
                label=label,
            )

    def merge_opened(
        self, client: str, *, change: int, parts: Sequence[Part] = ()
    ) -> carrying.MergeReport:
        with self._connected(client) as connection:
            return carrying.merge_opened(
                connection,
                client=client,
                user=self._account.user,
                change=change,
                parts=parts,
            )

    def _connected(
        self, client: str = NEUTRAL_CLIENT, *, tracks: bool = False
    ) -> AbstractContextManager[Connection]:
        return connected(
            self._account, holder=self._holder, client=client, tracks=tracks
        )


def _is_submitted(connection: Connection, change: int) -> bool:
    """Ask for the first one from this number on: it is found by key.

    `describe` would list all its files, and a path would count against MaxScanRows.
    """
    records = connection.run(
        *("changes", "-r", "-m", "1", "-e", str(change), "-s", "submitted")
    ).records
    return bool(records) and int(records[0]["change"]) == change


def _require_submitted(connection: Connection, change: int) -> None:
    """Refuse a change that is not there; a sync would take the one before it."""
    if not _is_submitted(connection, change):
        raise NotFound(
            f"There is no submitted change {change} that this account may see.",
            system="perforce",
            operation="changes",
            remote_code=str(NO_SUCH_CHANGE),
        )


def _finding(record: Record, *, client: str, root: str) -> ReconcileFinding:
    path = record.get("localFile") or record["clientFile"]
    return ReconcileFinding(
        action=record["action"].removeprefix("move/"),
        depot_file=record["depotFile"],
        path=client_path_to_local(path, client=client, root=root),
    )


def _protection(record: Record) -> Protection:
    return Protection(
        level=record["perm"],
        host=record["host"],
        path=record["depotFile"],
        is_exclusion="unmap" in record,
    )


def _spec(fields: Record, *, times: Record) -> ClientSpec:
    """Read a form or a row of `p4 clients`. The times of a form have no zone."""
    return ClientSpec(
        name=fields["Client"],
        owner=fields.get("Owner", ""),
        root=fields.get("Root", ""),
        host=fields.get("Host", ""),
        description=shown(fields.get("Description", "")).rstrip("\n"),
        options=fields.get("Options", ""),
        submit_options=fields.get("SubmitOptions", ""),
        line_end=fields.get("LineEnd", ""),
        stream=fields.get("Stream", ""),
        type=fields.get("Type", ""),
        server_id=fields.get("ServerID", ""),
        view=tuple(fields.get("View", ())),
        updated_at=_moment(times.get("Update")),
        accessed_at=_moment(times.get("Access")),
    )


def _moment(seconds: str | None) -> dt.datetime | None:
    return dt.datetime.fromtimestamp(int(seconds), tz=dt.UTC) if seconds else None
