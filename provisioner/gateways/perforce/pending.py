"""What is opened, pending and shelved on a client, as the server tells it."""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest

from provisioner.gateways.errors import NotFound
from provisioner.gateways.perforce.connection import Connection
from provisioner.gateways.perforce.errors import (
    CLIENT_HAS_OPENED_FILES,
    CLIENT_HAS_PENDING_CHANGES,
    NO_SUCH_CLIENT,
    ClientHasOpenedFiles,
    ClientHasPendingChanges,
)
from provisioner.gateways.perforce.library import Record
from provisioner.gateways.perforce.types import (
    OpenedFile,
    PendingChange,
    ShelvedFile,
)
from provisioner.lib.storable import shown

DEFAULT_CHANGE = "default"


def list_opened(connection: Connection, *, client: str) -> list[OpenedFile]:
    """Return files opened on the client, whoever opened them.

    Source: p4 opened -a -C.
    """
    records = connection.run("opened", "-a", "-C", client, is_bulk=True).records
    return [_opened(record, client=client) for record in records]


def list_pending_changes(connection: Connection, *, client: str) -> list[PendingChange]:
    """Return the client's numbered pending changes with their whole descriptions.

    Source: p4 changes -l -c client -s pending, -s shelved; p4 opened -a -C.
    """

    def of_status(status: str) -> list[Record]:
        return connection.run("changes", "-l", "-c", client, "-s", status).records

    pending, shelved = of_status("pending"), of_status("shelved")
    with_shelf = {record["change"] for record in shelved}
    files = Counter(f.change for f in list_opened(connection, client=client))
    return [
        PendingChange(
            change=int(record["change"]),
            user=record["user"],
            client=record["client"],
            description=shown(record.get("desc", "")).rstrip("\n"),
            is_shelved=record["change"] in with_shelf,
            files=files[record["change"]],
        )
        for record in pending
    ]


def list_shelved_files(connection: Connection, *, change: int) -> list[ShelvedFile]:
    """Return what is shelved in a change; nothing where there is no shelf.

    Source: p4 describe -S -s.
    """
    shelved = []
    records = connection.run("describe", "-S", "-s", str(change), is_bulk=True).records
    for record in records:
        columns = [
            _column(record, name)
            for name in ("depotFile", "action", "type", "rev", "fileSize", "digest")
        ]
        for path, action, kind, revision, size, digest in zip_longest(*columns):
            shelved.append(
                ShelvedFile(
                    depot_file=path or "",
                    action=action or "",
                    type=kind or "",
                    revision=_number(revision),
                    size_bytes=_number(size),
                    digest=digest or "",
                )
            )
    return shelved


def create_change(connection: Connection, *, client: str, description: str) -> int:
    """Make an empty pending change of the connection's user on its client.

    Source: p4 change -i.
    """
    lines = "".join(f"\t{line}\n" for line in description.split("\n"))
    form = f"Change:\tnew\n\nClient:\t{client}\n\nDescription:\n{lines}"
    reply = connection.run("change", "-i", text=form)
    return int(reply.texts[0].split()[1])


def form_of(connection: Connection, client: str) -> Record:
    """Return the form of a client that exists.

    Raises: NotFound.
    """
    [form] = connection.run("client", "-o", client).records
    if "Update" not in form:
        raise NotFound(
            f"There is no client {client}.",
            system="perforce",
            operation="client -o",
            remote_code=str(NO_SUCH_CLIENT),
        )
    return form


def require_no_work(connection: Connection, *, client: str) -> None:
    """Refuse to force what would drop somebody's work.

    Raises: ClientHasOpenedFiles, ClientHasPendingChanges.
    """
    if list_opened(connection, client=client):
        raise ClientHasOpenedFiles(
            f"Client {client} has files opened.",
            system="perforce",
            operation="client -d",
            remote_code=str(CLIENT_HAS_OPENED_FILES),
        )
    changes = list_pending_changes(connection, client=client)
    if not all(change.is_shelved for change in changes):
        raise ClientHasPendingChanges(
            f"Client {client} has pending changes without a shelf.",
            system="perforce",
            operation="client -d",
            remote_code=str(CLIENT_HAS_PENDING_CHANGES),
        )


def _opened(record: Record, *, client: str) -> OpenedFile:
    action = record["action"]
    is_new = record.get("haveRev") == "none" or action in ("add", "move/add", "branch")
    return OpenedFile(
        depot_file=record["depotFile"],
        client_file=record.get("clientFile", ""),
        action=action,
        change=record.get("change", DEFAULT_CHANGE),
        user=record.get("user", ""),
        client=record.get("client", client),
        type=record.get("type", ""),
        revision=0 if is_new else _number(record.get("rev")),
        moved_file=record.get("movedFile", ""),
    )


def _column(record: Record, name: str) -> list[str | None]:
    """Return a numbered field: the library leaves None where a file lacks it."""
    value = record.get(name, [])
    return list(value) if isinstance(value, list) else [value]


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
