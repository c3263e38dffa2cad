"""Send one file to the client, or remove it there."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from provisioner.lab.perforce import filetypes, hotmessages, keywords, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.bulkplan import Noted
from provisioner.lab.perforce.commands.syncplan import Step
from provisioner.lab.perforce.content import CHUNK, Content
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_revision
from provisioner.lab.perforce.wire import Value


def without_keywords(content: Content, revision: Revision) -> Revision:
    """Return a revision with the keywords in its content collapsed (-K)."""
    if revision.is_deleted or not keywords.has_keywords(revision.type):
        return revision
    data = keywords.collapsed(content.read(revision.digest), file_type=revision.type)
    digest, size = content.add(data)
    return revision._replace(digest=digest, size=size)


def send_file(
    request: Request,
    client: Client,
    revision: Revision,
    *,
    local: str,
    confirm: dict[str, int],
    clobber: bool = False,
    writable: bool = False,
) -> None:
    """Send one file's content; the client answers `done` or `declined`."""
    kind = revision.type
    settings = _settings_of(client, revision, clobber=clobber, writable=writable)
    chunks = request.state.content.chunks(revision.digest, likely_size=revision.size)
    if request.connection.is_logged or len(confirm) != 1 or kind == "symlink":
        _send_slowly(request, revision, local, settings, chunks, confirm)
        return
    request.is_unsettled = True
    [(name, number)] = confirm.items()
    send = request.connection.send_raw
    head = hotmessages.opening(local, revision.digest, revision.size, more=settings)
    # A small file is one piece, which goes with what opens and closes it.
    for data in chunks:
        if len(data) == CHUNK:
            send(head + hotmessages.writing(data))
            head = b""
        else:
            head += hotmessages.writing(data)
    send(head + hotmessages.closing(name, number, more=_ACK))


_ACK = ("handle", "sync", "confirm", replies.DONE, "decline", replies.DECLINED)


def send_piece(
    request: Request,
    client: Client,
    step: Noted,
    revision: Revision,
    *,
    confirm: tuple[str, int],
    clobber: bool,
    is_told: bool,
) -> bool:
    """Send a small file, and its record if it `is_told` of, as one piece.

    The client answers as to `send_file`. Return False if it is not that simple; then
    nothing was sent.
    """
    if request.connection.is_logged or revision.type == "symlink":
        return False
    data = request.state.content.piece(revision.digest, size=revision.size)
    if data is None:
        return False
    messages = hotmessages.whole_file(
        (*step[:4], revision.size),
        revision.digest,
        data,
        client=client,
        is_told=is_told,
        more=_settings_of(client, revision, clobber=clobber, writable=False),
        closed=confirm,
        asked=_ACK,
    )
    if messages:
        request.is_unsettled = True
        request.connection.send_raw(messages)
    return bool(messages)


def _settings_of(
    client: Client, revision: Revision, *, clobber: bool, writable: bool
) -> tuple[str, ...]:
    """Return the variables of a file that say how it is written."""
    kind = revision.type
    settings = _settings(
        kind,
        client.line_end,
        "rw" if writable else client.perms(kind),
        client.keeps_writable(kind) and not clobber,
    )
    if "modtime" in client.options or "m" in filetypes.modifiers_of(kind):
        return (*settings, "time", str(revision.modified))
    return settings


@lru_cache(maxsize=1024)
def _settings(
    file_type: str, line_end: str, perms: str, keeps_writable: bool
) -> tuple[str, ...]:
    """Return the variables that files of one kind have in common."""
    code = filetypes.wire_code(file_type, line_end=line_end)
    common = ("type", code, "handle", "sync", "perms", perms)
    return (*common, "noclobber", "") if keeps_writable else common


def _send_slowly(
    request: Request,
    revision: Revision,
    local: str,
    settings: tuple[str, ...],
    chunks: Iterable[bytes],
    confirm: dict[str, int],
) -> None:
    """Send one file message by message, each of which is logged."""
    variables: dict[str, Value] = {"path": local}
    if filetypes.base_of(revision.type) != "symlink":
        variables |= {"digest": revision.digest, "fileSize": revision.size}
    rest = zip(settings[::2], settings[1::2], strict=True)
    request.send("client-OpenFile", {**variables, **dict(rest)})
    for data in chunks:
        request.send("client-WriteFile", {"handle": "sync", "data": data})
    request.send("client-CloseFile", {"handle": "sync", "commit": ""})
    _ask_if_done(request, confirm)


def _ask_if_done(request: Request, confirm: dict[str, int]) -> None:
    request.send(
        "client-Ack",
        {
            "handle": "sync",
            "confirm": replies.DONE,
            "decline": replies.DECLINED,
            **confirm,
        },
    )


def remove_step(request: Request, client: Client, step: Step, index: int) -> None:
    """Remove a file for a sync; the client answers with the step's number."""
    previous = find_revision(request.state.database, path=step.path, number=step.number)
    remove_file(
        request,
        client,
        local=client.local_path(step.client_path),
        file_type=previous.type if previous else "binary",
        confirm={"step": index},
        clobber=request.has("f"),
    )


def remove_file(
    request: Request,
    client: Client,
    *,
    local: str,
    file_type: str,
    confirm: dict[str, int],
    clobber: bool = True,
) -> None:
    """Remove one file on the client; it answers as to `send_file`.

    The answer is requested by a message of its own: not every client answers the
    removal itself.

    Source: ClientSystemFileCommands in perforce/p4java.
    """
    variables: dict[str, Value] = {
        "path": local,
        "type": filetypes.wire_code(file_type, line_end=client.line_end),
        "handle": "sync",
    }
    if client.keeps_writable(file_type) and not clobber:
        variables["noclobber"] = ""
    if "rmdir" in client.options:
        variables["rmdir"] = "preserveCWD"
    request.send("client-DeleteFile", variables)
    _ask_if_done(request, confirm)
