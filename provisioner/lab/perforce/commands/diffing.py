"""p4 diff: compare the files of a workspace with the depot.

Source: p4 help diff. The client itself compares texts; which keys a tagged record has
is inferred.
"""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.lab.perforce import filetypes, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.holdings import have_in, opened_by
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_revision, revisions_at
from provisioner.lab.perforce.wire import Value


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A file of the workspace and the revision it is compared with."""

    revision: Revision
    local: str
    is_opened: bool


# Letter of -s -> opened files or others, and the states that are listed.
_LISTS = {
    "a": (True, {"exists", "missing"}),
    "r": (True, {"same"}),
    "d": (False, {"missing"}),
    "e": (False, {"exists"}),
    "l": (False, {"same", "exists", "missing"}),
}
_WORDS = {"same": "same", "exists": "diff", "missing": "missing"}


def diff(request: Request) -> None:
    """Answer `p4 diff`."""
    letter = request.options.get("s", "")
    if letter not in ("", *_LISTS):
        raise CommandError(7198, usage=_USAGE)
    client = request.get_client()
    limit = request.number("m", default=0)
    for wanted in file_sets(request, default=""):
        pairs = _pairs(request, client, wanted)
        if letter:
            _list_states(request, client, wanted, pairs, letter)
            continue
        if not _is_about_all(request, wanted):
            pairs = [pair for pair in pairs if pair.is_opened]
        if not pairs:
            request.say(6526, argc=wanted.typed)
        states = _states(request, client, pairs)
        for pair in pairs[: limit or None]:
            _compare(request, client, pair, states.get(pair.revision.path, "missing"))
    request.settle()


def _is_about_all(request: Request, wanted: FileSet) -> bool:
    """Return whether unopened files are compared as well."""
    return request.has("f") or wanted.upper.kind != "head"


def _pairs(request: Request, client: Client, wanted: FileSet) -> list[Pair]:
    """Return the files of a set with the revision each is compared with, by path.

    That is the one the client has, unless the argument names another.
    """
    database = request.state.database
    opened = opened_by(database, client=client.name)
    found = []
    named = (
        {}
        if wanted.upper.kind == "head"
        else {revision.path: revision for revision in revisions_at(database, wanted)}
    )
    for have in have_in(database, wanted, client=client.name):
        item = opened.get(have.path)
        if item is not None and item.is_delete:
            continue
        revision = named.get(have.path) or find_revision(
            database, path=have.path, number=have.revision
        )
        if revision is None or revision.is_deleted:
            continue
        local = client.local_path(have.client_path)
        found.append(Pair(revision=revision, local=local, is_opened=item is not None))
    return found


def _states(request: Request, client: Client, pairs: list[Pair]) -> dict[str, str]:
    """Return how each file compares to its revision, by depot path."""
    for index, pair in enumerate(pairs):
        code = filetypes.wire_code(pair.revision.type, line_end=client.line_end)
        request.send(
            "client-CheckFile",
            {
                "path": pair.local,
                "type": code,
                "digest": pair.revision.digest,
                "confirm": replies.COMPARED,
                "item": index,
            },
        )
    return {
        pairs[answer.integer("item")].revision.path: answer.text("status")
        for answer in request.answers()
        if answer.func == replies.COMPARED
    }


def _list_states(
    request: Request,
    client: Client,
    wanted: FileSet,
    pairs: list[Pair],
    letter: str,
) -> None:
    is_opened, listed = _LISTS[letter]
    if wanted.upper.kind == "head":
        pairs = [pair for pair in pairs if pair.is_opened == is_opened]
    states = _states(request, client, pairs)
    found = False
    for pair in pairs:
        state = states.get(pair.revision.path, "missing")
        if state not in listed:
            continue
        found = True
        if request.is_tagged:
            shown = {"status": _WORDS[state]} if letter == "l" else {}
            request.record({**_record(pair), **shown})
        else:
            word = f"{_WORDS[state]} " if letter == "l" else ""
            request.info(f"{word}{pair.local}")
    if not found:
        request.say(6517, argc=wanted.typed)


def _record(pair: Pair) -> dict[str, Value]:
    return {
        "depotFile": pair.revision.path,
        "clientFile": pair.local,
        "rev": pair.revision.revision,
        "type": pair.revision.type,
    }


def _compare(request: Request, client: Client, pair: Pair, state: str) -> None:
    """Ask the client to diff a text file; other files only for whether they differ."""
    if request.has("O") and state == "same":
        return
    revision = pair.revision
    request.report(
        _record(pair),
        6363,
        depotFile=revision.path,
        depotRev=f"#{revision.revision}",
        localPath=pair.local,
        type="" if filetypes.is_text(revision.type) else revision.type,
    )
    if state == "missing":
        return
    if not filetypes.is_text(revision.type) and not request.has("t"):
        if state == "exists":
            request.info("(... files differ ...)")
        return
    request.send(
        "client-OpenDiff",
        {
            "path": pair.local,
            "type": filetypes.wire_code(revision.type, line_end=client.line_end),
            "handle": "diff",
            "diffFlags": request.options.get("d", ""),
        },
    )
    for data in request.state.content.chunks(revision.digest):
        request.send("client-WriteDiff", {"handle": "diff", "data": data})
    request.send("client-CloseDiff", {"handle": "diff"})


_USAGE = "diff [-d<flags> -f -m max -Od -s<flag> -t] [file[revision]...]"

COMMANDS = (
    Command(
        names=("diff",),
        run=diff,
        usage=_USAGE,
        flags="ft",
        valued="dsmO",
        absent="A",
        uses_client=True,
    ),
)
