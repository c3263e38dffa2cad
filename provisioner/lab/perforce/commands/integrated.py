"""p4 integrated: integrations between submitted files.

Source: p4 help integrated.
"""

from __future__ import annotations

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.integrations import all_integrations
from provisioner.lab.perforce.request import Request


def integrated(request: Request) -> None:
    """Answer `p4 integrated`: one record for each integration to or from a file."""
    for wanted in file_sets(request, default="//..."):
        found = False
        for taken in all_integrations(request.state.database):
            if not (wanted.has_depot_path(taken.path) and wanted.shows(taken.path)):
                continue
            found = True
            request.report(
                {
                    "toFile": taken.path,
                    "fromFile": taken.other,
                    "startToRev": _revision(taken.start),
                    "endToRev": _revision(taken.end),
                    "startFromRev": _revision(taken.other_start),
                    "endFromRev": _revision(taken.other_end),
                    "how": taken.how,
                    "change": taken.change,
                },
                6409,
                toFile=taken.path,
                toRev=_span(taken.start, taken.end),
                how=taken.how,
                fromFile=taken.other,
                fromRev=_span(taken.other_start, taken.other_end),
            )
        if not found:
            request.say(6521, argc=wanted.typed)


def _revision(number: int) -> str:
    return f"#{number}" if number else "#none"


def _span(start: int, end: int) -> str:
    """Return the revisions after `start` up to `end`."""
    return f"#{end}" if end <= start + 1 else f"#{start + 1},#{end}"


COMMANDS = (
    Command(
        names=("integrated",),
        run=integrated,
        usage="integrated [file...]",
        absent="rb",
    ),
)
