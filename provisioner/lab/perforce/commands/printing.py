"""p4 print."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from provisioner.lab.perforce import filetypes, paths
from provisioner.lab.perforce.commands.files import report_revision, revisions_of
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import without_keywords
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    Revision,
    revisions_in,
)


def print_files(request: Request) -> None:
    """Answer `p4 print`."""
    limit, count = request.number("m", default=0), 0
    for wanted in file_sets(request):
        printed = 0
        for revision in _chosen(request, wanted):
            if limit and count == limit:
                return
            if request.has("o"):
                # Everything goes to "-", which is where the client's program writes.
                if not printed or request.options["o"] == "-":
                    _print_to_file(request, revision)
            else:
                _print_one(request, revision)
            printed, count = printed + 1, count + 1
        if not printed:
            request.say(wanted.nothing_found, argc=wanted.typed)


def _chosen(request: Request, wanted: FileSet) -> Iterator[Revision]:
    """Yield what to print: one revision of each file, with -a all of the range.

    -K, formerly -k, leaves the keywords empty.

    Source: p4 help print.
    """
    found: Iterable[Revision] = revisions_of(request, wanted)
    if request.has("a"):
        found = revisions_in(request.state.database, wanted)
    is_plain = request.has("K") or request.has("k")
    for revision in found:
        if revision.is_deleted:
            continue
        content = request.state.content
        yield without_keywords(content, revision) if is_plain else revision


def _print_one(request: Request, revision: Revision) -> None:
    if not request.has("q"):
        report_revision(request, revision, fileSize=revision.size)
    func = (
        "client-OutputText"
        if filetypes.is_text(revision.type)
        else "client-OutputBinary"
    )
    for data in itertools.chain(_chunks(request, revision), [b""]):
        # Of an empty file, too, there is one piece.
        if data or not revision.size:
            request.send(func, {"data": data})


def _chunks(request: Request, revision: Revision) -> Iterator[bytes]:
    """Yield a file's content, or the part that --offset and --size choose.

    P4Java requests all with a size of 0.

    Source: p4 help print.
    """
    skipped, left = _long_number(request, "offset"), _long_number(request, "size")
    is_limited = left > 0
    for data in request.state.content.chunks(revision.digest):
        wanted = data[skipped : skipped + left] if is_limited else data[skipped:]
        skipped = max(0, skipped - len(data))
        left -= len(wanted)
        yield wanted
        if is_limited and not left:
            return


def _long_number(request: Request, name: str) -> int:
    text = request.options.get(name, "0")
    if not text.isdecimal():
        raise CommandError(7198, usage=f"print --{name}=number")
    return int(text)


def _local_path(request: Request) -> str:
    name = request.options["o"]
    if name == "-":
        return name
    return paths.unescape(name) if name.startswith("/") else f"{request.cwd}/{name}"


def _print_to_file(request: Request, revision: Revision) -> None:
    if not request.has("q"):
        report_revision(request, revision, fileSize=revision.size)
    request.send(
        "client-OpenFile",
        {
            "path": _local_path(request),
            "type": filetypes.wire_code(revision.type, line_end="local"),
            "handle": "print",
            "perms": "rw",
        },
    )
    for data in request.state.content.chunks(revision.digest):
        request.send("client-WriteFile", {"handle": "print", "data": data})
    request.send("client-CloseFile", {"handle": "print", "commit": ""})
    request.settle()


COMMANDS = (
    Command(
        names=("print",),
        run=print_files,
        usage=(
            "print [-a -K -q] [-m max] [-o path] [--offset=number] [--size=number]"
            " file..."
        ),
        flags="aKkq",
        valued="mo",
        absent="ABLQTU",
        long=("offset", "size"),
    ),
)
