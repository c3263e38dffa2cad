"""p4 sizes -s: how much lies under each argument, added up by the server."""

from __future__ import annotations

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.messages import NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import revisions_at


def sizes(request: Request) -> None:
    """Answer `p4 -Ztag sizes -s`: a record for each argument."""
    if not request.has("s") or not request.is_tagged:
        raise NotInLab("sizes without -s, or without tags")
    for wanted in file_sets(request):
        there = [
            revision
            for revision in revisions_at(request.state.database, wanted)
            if not revision.is_deleted
        ]
        request.record(
            {
                "path": wanted.typed,
                "fileCount": len(there),
                "fileSize": sum(max(revision.size, 0) for revision in there),
            }
        )


COMMANDS = (
    Command(
        names=("sizes",),
        run=sizes,
        usage="sizes -s file...",
        flags="s",
        valued="m",
        absent="aSzbhH",
    ),
)
