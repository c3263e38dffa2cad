"""p4 clean, or reconcile -w: make the workspace match the have list.

Source: p4 help reconcile.
"""

from __future__ import annotations

from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.sending import remove_file, send_file
from provisioner.lab.perforce.holdings import Opened
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import find_revision

# What reconcile would open a file for -> what happens to it, and how it is said.
_OUTCOMES = {
    "edit": ("refreshed", 6490),
    "delete": ("added", 6484),
    "add": ("deleted", 6485),
}


def clean(request: Request, client: Client, found: list[Opened]) -> None:
    """Undo what reconcile found; with -n only report it."""
    for item in found:
        local = client.local_path(item.client_path)
        outcome, line = _OUTCOMES[item.action]
        number = item.revision or "none"
        request.report(
            {
                "depotFile": item.path,
                "clientFile": local,
                "rev": number,
                "action": outcome,
            },
            line,
            depotFile=item.path,
            depotRev=f"#{number}",
            haveRev=f"#{number}",
            localPath=local,
        )
        if request.has("n"):
            continue
        revision = find_revision(
            request.state.database, path=item.path, number=item.revision
        )
        if revision is None:
            remove_file(request, client, local=local, file_type=item.type, confirm={})
        else:
            send_file(request, client, revision, local=local, confirm={}, clobber=True)
    request.settle()
