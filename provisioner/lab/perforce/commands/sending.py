"""Sending one file's content to the client."""

from __future__ import annotations

from provisioner.lab.perforce import filetypes
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
    }
    if writable or client.perms(revision.type) == "rw":
        variables["perms"] = "rw"
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
        {"handle": "sync", "confirm": "done", "decline": "declined", **confirm},
    )
