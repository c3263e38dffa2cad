"""Resolve the file type, if somebody else changed it.

Source: p4 help resolve (-At and the rules of -a). Two people who gave a file different
types have to choose; the client's own question for it is not part of the lab.
"""

from __future__ import annotations

from provisioner.lab.perforce import filetypes
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.holdings import Opened
from provisioner.lab.perforce.integrations import Resolve
from provisioner.lab.perforce.messages import NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision
from provisioner.lab.perforce.wire import Value


def takes_type(
    opened: Opened, *, theirs: Revision | None, base: Revision | None
) -> bool:
    """Return whether somebody else has changed the type since."""
    return (
        theirs is not None
        and base is not None
        and not theirs.is_deleted
        and theirs.type not in (base.type, opened.type)
    )


def announce_type(
    request: Request, client: Client, item: Resolve, opened: Opened, theirs: Revision
) -> None:
    """Report that there are types to choose from."""
    local = client.local_path(opened.client_path)
    record: dict[str, Value] = {
        "clientFile": local,
        "fromFile": item.other,
        "startFromRev": item.start or "none",
        "endFromRev": item.end,
        "baseFile": item.base,
        "baseRev": item.base_revision,
        "resolveType": "filetype",
        "resolveFlag": "t",
    }
    if request.is_tagged:
        request.record(record)
    else:
        request.info(
            f"{local} - resolving filetype from {item.other}{item.revisions}"
            f" (theirs {theirs.type}, yours {opened.type})"
        )


def resolved_type(
    letter: str, opened: Opened, *, theirs: Revision, base: Revision
) -> str | None:
    """Return the type after `-a letter`; None if a person has to choose.

    Raises: NotInLab for what a server would ask the person, or force together.
    """
    if letter in ("t", "y"):
        return theirs.type if letter == "t" else opened.type
    if letter and opened.type == base.type:
        return theirs.type
    if letter in ("m", "s"):
        return None
    way = f" -a{letter}" if letter else ""
    raise NotInLab(f"resolve{way} of two file types")


def give_type(request: Request, client: Client, opened: Opened) -> None:
    """Record the type of an opened file, and change the client's file to it."""
    with request.state.database.writing():
        request.state.database.execute(
            "UPDATE opened SET type=? WHERE client=? AND path=?",
            *(opened.type, opened.client, opened.path),
        )
    request.send(
        "client-ChmodFile",
        {
            "path": client.local_path(opened.client_path),
            "type": filetypes.wire_code(opened.type, line_end=client.line_end),
            "perms": "rw",
        },
    )
