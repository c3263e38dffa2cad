"""p4 logtail: the end of the server's log, or what comes after an offset.

Source: p4 help logtail and its page in the command reference: the log's name, blocks
of data and the offset of the next one, each in a record of its own, as p4java's
LogTailDelegator reads them; the message 7557 of the catalog. What an offset beyond the
end answers is not documented; here there is no data, and the offset is the same.
"""

from __future__ import annotations

from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request

_BLOCK_BYTES = 8192


def logtail(request: Request) -> None:
    """Answer `p4 logtail`: without -s the last block."""
    if not request.state.is_super(request.user):
        raise CommandError(6185)
    path = request.state.config.log
    if path is None:
        request.say(7557)
        return
    size = max(1, request.number("b", default=_BLOCK_BYTES))
    blocks = request.number("m", default=0) if request.has("s") else 0
    with path.open("rb") as log:
        end = log.seek(0, 2)
        start = request.number("s", default=max(0, end - size))
        log.seek(start)
        request.record({"file": str(path)})
        told = 0
        # What is written meanwhile is for the next call.
        while start < end and (not blocks or told < blocks):
            data = log.read(min(size, end - start))
            request.record({"data": data})
            start, told = start + len(data), told + 1
        request.record({"offset": str(start)})


COMMANDS = (
    Command(
        names=("logtail",),
        run=logtail,
        usage="logtail [ -b blocksize ] [ -s offset [ -m maxBlocks ] ] [ -l log ]",
        valued="bsm",
        absent="l",
        most_arguments=0,
    ),
)
