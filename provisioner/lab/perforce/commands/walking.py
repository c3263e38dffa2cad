"""What the client finds below a directory, for p4 reconcile."""

from __future__ import annotations

from provisioner.lab.perforce import paths, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.filespec import FileSet
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.wire import Value


def walk(request: Request, client: Client, wanted: FileSet) -> dict[str, str]:
    """Return what the client finds below the set's directory: local path to size.

    Only if files are missing does it report sizes; otherwise they are "".
    """
    directory, is_deep = _directory(client, wanted)
    variables: dict[str, Value] = {"dir": directory, "confirm": replies.WALKED}
    if is_deep:
        variables["traverse"] = "1"
    if request.has("I"):
        variables["skipIgnore"] = "1"
    for index, line in enumerate(client.view.lines):
        pattern = client.local_pattern(line.right)
        variables[f"mapTable{index}"] = line.flag + pattern
    request.send("client-ReconcileAdd", variables)
    found = {}
    for answer in request.answers():
        if answer.func == replies.WALKED:
            index = 0
            while f"file{index}" in answer:
                found[answer.text(f"file{index}")] = answer.text(f"fileSize{index}")
                index += 1
    return found


def _directory(client: Client, wanted: FileSet) -> tuple[str, bool]:
    """Return the directory to walk, and whether to descend."""
    if not wanted.in_client_syntax:
        return client.root, True
    prefix = paths.literal_prefix(wanted.pattern)
    directory = client.local_path(prefix.rpartition("/")[0] + "/").rstrip("/")
    return directory or "/", "..." in wanted.pattern or wanted.pattern.count(
        "/"
    ) > prefix.count("/")
