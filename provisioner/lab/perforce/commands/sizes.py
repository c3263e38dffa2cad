"""p4 sizes: sizes of files, one by one or summed up by the server.

Source: p4 help sizes. The words of the lines without tags are inferred.
"""

from __future__ import annotations

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, revisions_at


def sizes(request: Request) -> None:
    """Answer `p4 sizes`: a record per file, with -s one per argument."""
    limit = request.number("m", default=0)
    for wanted in file_sets(request):
        there = [
            revision
            for revision in revisions_at(request.state.database, wanted)
            if not revision.is_deleted
        ][: limit or None]
        request.check_limits(scanned=len(there), results=len(there))
        if request.has("s"):
            _add_up(request, wanted.typed, there)
        elif there:
            _list(request, there)
        else:
            request.say(wanted.nothing_found, argc=wanted.typed)


def _add_up(request: Request, path: str, there: list[Revision]) -> None:
    count, size = len(there), sum(max(revision.size, 0) for revision in there)
    if request.is_tagged:
        request.record({"path": path, "fileCount": count, "fileSize": size})
    else:
        request.info(f"{path} {count} files {size} bytes")


def _list(request: Request, there: list[Revision]) -> None:
    for revision in there:
        path, number, size = revision.path, revision.revision, revision.size
        if request.is_tagged:
            request.record({"depotFile": path, "rev": number, "fileSize": size})
        else:
            request.info(f"{path}#{number} {size} bytes")


COMMANDS = (
    Command(
        names=("sizes",),
        run=sizes,
        usage="sizes [-s] [-m max] file...",
        flags="s",
        valued="m",
        absent="aACSUzbhH",
    ),
)
