"""Pending changes, and the files that are opened in them."""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter

from provisioner.gateways.perforce.connection import require_no_option
from provisioner.gateways.perforce.errors import (
    CHANGE_NOT_SHELVED,
    NO_SHELF_TO_DELETE,
    NO_SUCH_CHANGE,
)
from provisioner.gateways.perforce.facet import Facet
from provisioner.gateways.perforce.library import Record, as_number
from provisioner.gateways.perforce.types import (
    NewestWork,
    OpenedCounts,
    OpenedFile,
    PendingChange,
)
from provisioner.lib.storable import shown

DEFAULT_CHANGE = "default"
# A file of such a type is opened by one client at a time. Source: p4 help filetypes.
_EXCLUSIVE = re.compile(r"\+\w*l")


class PendingChanges(Facet):
    """Pending changes and opened files."""

    def list_opened(self, client: str) -> list[OpenedFile]:
        """Return the files opened on the client, by any user.

        Source: p4 opened -a -C.
        """
        with self._connected() as connection:
            records = connection.run("opened", "-a", "-C", client, is_bulk=True).records
        return [_opened(record, client=client) for record in records]

    def count_opened_by(self, user: str) -> dict[str, int]:
        """Return how many files a user has opened, by client.

        `opened -C client` might count as a use of the client; this names none.

        Raises: Refused (a name that the command would take for an option).
        Source: p4 opened -a -u user.
        """
        require_no_option(user)
        opened: Counter[str] = Counter()
        with self._connected() as connection:
            connection.run(
                *("opened", "-a", "-u", user),
                each=lambda record: opened.update([record["client"]]),
                is_bulk=True,
            )
        return dict(opened)

    def count_all_opened(self, *, most: int) -> dict[str, OpenedCounts]:
        """Return how many files each client has opened, of so many files at most.

        It names no client, so no Access date moves.

        Source: p4 opened -a -m max.
        """
        opened, locked = Counter[str](), Counter[str]()

        def take(record: Record) -> None:
            opened[record["client"]] += 1
            if "ourLock" in record or _EXCLUSIVE.search(record.get("type", "")):
                locked[record["client"]] += 1

        with self._connected() as connection:
            connection.run("opened", "-a", "-m", str(most), each=take, is_bulk=True)
        return {
            client: OpenedCounts(opened=count, locked=locked[client])
            for client, count in opened.items()
        }

    def revert_server_side(self, client: str) -> None:
        """Revert everything opened on the client without touching its files.

        Source: p4 revert -k -C client //...
        """
        with self._connected(client) as connection:
            connection.run("revert", "-k", "-C", client, "//...", is_bulk=True)

    def list_pending(self, client: str) -> list[PendingChange]:
        """Return the client's numbered pending changes with their full descriptions.

        All of them, as what is missing would count as settled. No submitted change is
        read, however many there are: pending ones have a table of their own.

        Source: p4 changes -l -c client -s pending, -s shelved; p4 opened -a -C;
        db.changex of the schema.
        """
        with self._connected() as connection:

            def of_status(status: str) -> list[Record]:
                return connection.run(
                    "changes", "-l", "-c", client, "-s", status
                ).records

            pending, shelved = of_status("pending"), of_status("shelved")
            opened = PendingChanges.on(connection).list_opened(client)
        with_shelf = {record["change"] for record in shelved}
        files = Counter(file.change for file in opened)
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

    def create_pending(self, client: str, *, description: str) -> int:
        """Create an empty pending change of our user on the client.

        Source: p4 change -i.
        """
        lines = "".join(f"\t{line}\n" for line in description.split("\n"))
        form = f"Change:\tnew\n\nClient:\t{client}\n\nDescription:\n{lines}"
        with self._connected(client) as connection:
            reply = connection.run("change", "-i", text=form)
        return int(reply.texts[0].split()[1])

    def delete_pending(self, change: int, *, delete_shelf: bool) -> None:
        """Delete a pending change, and its shelf if asked. Safe to repeat.

        Raises: InUse (files are still opened in it; or shelved, and not asked).
        Source: p4 shelve -d -f -c, p4 change -d -f.
        """
        with self._connected() as connection:
            if delete_shelf:
                connection.run(
                    *("shelve", "-d", "-f", "-c", str(change)),
                    accepted={CHANGE_NOT_SHELVED, NO_SHELF_TO_DELETE, NO_SUCH_CHANGE},
                    is_bulk=True,
                )
            connection.run("change", "-d", "-f", str(change), accepted={NO_SUCH_CHANGE})

    def newest_work(self, client: str, *, above: int) -> NewestWork:
        """Return when the client's newest submitted, shelved and pending changes date.

        Only changes above a number are read, to stay below row limits. Asked without
        using the client, so that its Access date does not change.

        Source: p4 changes -m 1 -e above -c client -s submitted, shelved, pending.
        """
        with self._connected() as connection:

            def newest(status: str) -> dt.datetime | None:
                # Submitted changes have no index by client: all down to -e are read.
                records = connection.run(
                    *("changes", "-m", "1", "-e", str(above + 1)),
                    *("-c", client, "-s", status),
                ).records
                if not records:
                    return None
                return dt.datetime.fromtimestamp(int(records[0]["time"]), tz=dt.UTC)

            return NewestWork(
                submitted_at=newest("submitted"),
                shelved_at=newest("shelved"),
                pending_at=newest("pending"),
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
        revision=0 if is_new else as_number(record.get("rev")),
        moved_file=record.get("movedFile", ""),
    )
