"""Bringing one file to the client, or removing it there."""

from __future__ import annotations

from provisioner.lab.perforce import filetypes, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision
from provisioner.lab.perforce.wire import Value


def send_file(
    request: Request,
    client: Client,
    revision: Revision,
    *,
    local: str,
    confirm: dict[str, Value],
    clobber: bool = False,
    writable: bool = False,
) -> None:
    """Send one file's content; the client answers `done` or `declined`."""
    variables: dict[str, Value] = {
        "path": local,
        "type": filetypes.wire_code(revision.type, line_end=client.line_end),
        "handle": "sync",
        "perms": "rw" if writable else client.perms(revision.type),
    }
    if "modtime" in client.options or "m" in filetypes.modifiers_of(revision.type):
        variables["time"] = revision.modified
    if client.keeps_writable(revision.type) and not clobber:
        variables["noclobber"] = ""
    if filetypes.base_of(revision.type) != "symlink":
        variables["digest"] = revision.digest
        variables["fileSize"] = revision.size
    request.send("client-OpenFile", variables)
    for data in request.state.content.chunks(revision.digest):
        request.send("client-WriteFile", {"handle": "sync", "data": data})
    request.send("client-CloseFile", {"handle": "sync", "commit": ""})
    request.send(
        "client-Ack",
        {
            "handle": "sync",
            "confirm": replies.DONE,
            "decline": replies.DECLINED,
            **confirm,
        },
    )


def remove_file(
    request: Request,
    client: Client,
    *,
    local: str,
    file_type: str,
    confirm: dict[str, Value],
    clobber: bool = True,
) -> None:
    """Remove one file on the client; it answers as to `send_file`.

    The answer is asked for in a message of its own: not every client answers to the
    removal itself. Source: ClientSystemFileCommands in perforce/p4java.
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
    request.send(
        "client-Ack",
        {
            "handle": "sync",
            "confirm": replies.DONE,
            "decline": replies.DECLINED,
            **confirm,
        },
    )
