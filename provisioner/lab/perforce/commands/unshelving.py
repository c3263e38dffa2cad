"""p4 unshelve: open the files of a shelf with its content.

Source: p4 help unshelve. The content of the client's own file, and the changes of the
have list, are inferred.
"""

from __future__ import annotations

from provisioner.lab.perforce import replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.opening import (
    check_writeable,
    insert_opened,
    target_change,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import remove_file, send_file
from provisioner.lab.perforce.commands.shelving import chosen_of, find_pending
from provisioner.lab.perforce.holdings import Opened, opened_by
from provisioner.lab.perforce.integrations import (
    Resolve,
    drop_resolves,
    put_resolves,
)
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import find_head
from provisioner.lab.perforce.shelves import Shelved, origins_of, shelf_of
from provisioner.lab.perforce.wire import Value

# A file that took its content from one that is not known is a plain one.
_PLAIN = {
    "move/add": "add",
    "move/delete": "delete",
    "branch": "add",
    "integrate": "edit",
}


def unshelve(request: Request) -> None:
    """Answer `p4 unshelve`."""
    client = request.get_client()
    check_writeable(client)
    if not request.has("s"):
        raise CommandError(7198, usage=_USAGE)
    source, _, _ = find_pending(request, request.options["s"])
    change = target_change(request)
    shelf = chosen_of(request, shelf_of(request.state.database, change=source))
    if not shelf:
        request.say(6660, argc=" ".join(request.args))
        return
    _Unshelving(request, client, shelf, change=change).run()


class _Unshelving:
    """What happens to the files of one shelf."""

    def __init__(
        self, request: Request, client: Client, shelf: list[Shelved], *, change: int
    ) -> None:
        self._request = request
        self._client = client
        self._change = change
        self._shelf = shelf
        self._busy = opened_by(request.state.database, client=client.name)
        origins = origins_of(
            request.state.database, change=shelf[0].change, client=client.name
        )
        # The halves of a move go together or are plain files.
        chosen = {item.path for item in shelf}
        self._origins = [
            origin
            for origin in origins
            if origin.path in chosen
            and (origin.how != "moved from" or origin.other in chosen)
        ]
        self._opened: list[Opened] = []
        self._resolves: list[Resolve] = []

    def run(self) -> None:
        """Open what can be opened; files that the client declines stay as they were."""
        access = self._request.access()
        for item in self._shelf:
            place = self._client.view.to_client(item.path)
            if not access.allows("open", item.path):
                self._request.say(6513, argc=item.path)
            elif place is None:
                self._request.say(6511, argc=item.path)
            elif item.path in self._busy:
                self._merge_into(item, self._busy[item.path])
            else:
                self._open(item, place)
        declined = {
            self._opened[answer.integer("item")].path
            for answer in self._request.answers()
            if answer.func == replies.DECLINED
        }
        if not self._request.has("n"):
            self._record(declined)

    def _merge_into(self, item: Shelved, opened: Opened) -> None:
        """Leave a shelved edit of an opened file to a resolve."""
        if not (item.action == opened.action == "edit"):
            self._request.say(6654, depotFile=item.path, badAction=opened.action)
            return
        self._report(item, "edit", opened.revision)
        self._resolves.append(
            Resolve(
                client=self._client.name,
                path=item.path,
                other=item.name,
                start=item.revision,
                end=item.revision,
                base=item.path,
                base_revision=item.revision,
                how="",
            )
        )

    def _open(self, item: Shelved, place: str) -> None:
        """Send one file to the client; the state of its depot file decides how."""
        head = find_head(self._request.state.database, path=item.path)
        exists = head is not None and not head.is_deleted
        action, number = self._action(item), item.revision
        if number and not exists:
            self._request.say(6665, depotFile=item.path, badEdit=action)
            return
        if not number and head is not None and exists:
            # Somebody else added it meanwhile: an edit of theirs, to be resolved.
            action, number = "edit", head.revision
            self._resolves.append(
                Resolve(
                    client=self._client.name,
                    path=item.path,
                    other=item.path,
                    start=0,
                    end=head.revision,
                    base=item.path,
                    base_revision=0,
                    how="",
                )
            )
        self._report(item, action, number)
        index = len(self._opened)
        self._opened.append(
            Opened(
                self._client.name,
                item.path,
                place,
                number,
                action,
                item.type,
                self._request.user,
                self._change,
            )
        )
        if not self._request.has("n"):
            self._bring(item, place, index)

    def _action(self, item: Shelved) -> str:
        origins = {path for o in self._origins for path in (o.path, o.other)}
        return (
            item.action
            if item.path in origins
            else _PLAIN.get(item.action, item.action)
        )

    def _bring(self, item: Shelved, place: str, index: int) -> None:
        local = self._client.local_path(place)
        if not item.is_delete:
            send_file(
                self._request,
                self._client,
                item.as_revision,
                local=local,
                confirm={"item": index},
                clobber=self._request.has("f"),
                writable=True,
            )
            return
        remove_file(
            self._request,
            self._client,
            local=local,
            file_type=item.type,
            confirm={"item": index},
        )

    def _report(self, item: Shelved, action: str, number: int) -> None:
        place = self._client.view.to_client(item.path) or item.path
        record: dict[str, Value] = {
            "depotFile": item.path,
            "clientFile": self._client.local_path(place),
            "rev": number or 1,
            "action": action,
        }
        self._request.report(
            record,
            6655,
            depotFile=item.path,
            depotRev=f"#{number or 1}",
            action=action,
        )

    def _record(self, declined: set[str]) -> None:
        """Record opened files, and the revisions that they were opened at as had."""
        opened = [item for item in self._opened if item.path not in declined]
        opened = insert_opened(self._request, opened)
        kept = {item.path for item in opened} | set(self._busy)
        client, database = self._client.name, self._request.state.database
        origins = [origin for origin in self._origins if origin.path in kept]
        resolves = [item for item in self._resolves if item.path in kept]
        with database.writing():
            database.execute_many(
                "INSERT INTO have VALUES (?,?,?,?,0) ON CONFLICT DO UPDATE SET"
                " client_path=excluded.client_path, revision=excluded.revision",
                (
                    (client, item.path, item.client_path, item.revision)
                    for item in opened
                    if item.revision
                ),
            )
            drop_resolves(database, client=client, paths=[i.path for i in opened])
            put_resolves(database, [*origins, *resolves])
        for item in resolves:
            is_shelf = item.other != item.path
            self._request.say(
                6765,
                depotFile=item.path,
                fromFile=item.other if is_shelf else item.path,
                rev="" if is_shelf else item.revisions,
            )


_USAGE = "unshelve -s change [-f -n] [-c change] [file...]"

COMMANDS = (
    Command(
        names=("unshelve",),
        run=unshelve,
        usage=_USAGE,
        flags="fn",
        valued="sc",
        absent="bSPA",
        uses_client=True,
    ),
)
