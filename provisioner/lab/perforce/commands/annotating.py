"""p4 annotate: which revision added each line of a file.

Source: p4 help annotate; the keys of records are those that P4Java reads
(FileAnnotation).
"""

from __future__ import annotations

import difflib
from typing import NamedTuple

from provisioner.lab.perforce import filetypes, octets
from provisioner.lab.perforce.commands.files import report_revision
from provisioner.lab.perforce.commands.forms import day
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.integrations import integrations_of
from provisioner.lab.perforce.merge3 import lines_of
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_revision, revisions_in
from provisioner.lab.perforce.wire import Value

_MOST_LINES = 20_000


class _Line(NamedTuple):
    """A line, with the revisions that added it and last had it."""

    text: bytes
    first: Revision
    last: Revision


def annotate(request: Request) -> None:
    """Answer `p4 annotate`."""
    if request.has("i") and request.has("I"):
        raise CommandError(7198, usage=_ANNOTATE_USAGE)
    for wanted in file_sets(request):
        histories = _histories(request, wanted)
        if not histories:
            request.say(wanted.nothing_found, argc=wanted.typed)
        for history in histories:
            _annotate_one(request, history)


def _histories(request: Request, wanted: FileSet) -> list[list[Revision]]:
    """Return the revisions of each file, oldest first; deleted files with -a."""
    by_path: dict[str, list[Revision]] = {}
    for revision in revisions_in(request.state.database, wanted):
        by_path.setdefault(revision.path, []).insert(0, revision)
    return [
        history
        for history in by_path.values()
        if request.has("a") or not history[-1].is_deleted
    ]


def _annotate_one(request: Request, history: list[Revision]) -> None:
    head = history[-1]
    if not (request.has("t") or filetypes.is_text(head.type)):
        return
    if not request.has("q"):
        report_revision(request, head)
    if request.has("i"):
        history = _with_origins(request, history)
    for line in _lines(request, history):
        _show_annotated(request, line)


def _with_origins(request: Request, history: list[Revision]) -> list[Revision]:
    """Return a history extended by that of the file it was branched from."""
    database, seen = request.state.database, {history[0].path}
    while True:
        first = history[0]
        taken = integrations_of(database, path=first.path, revision=first.revision)
        origin = next(
            ((other, end) for how, other, _, end in taken if how == "branch from"), None
        )
        if origin is None or origin[0] in seen:
            return history
        path, end = origin
        seen.add(path)
        older = [find_revision(database, path=path, number=n + 1) for n in range(end)]
        history = [*(r for r in older if r is not None), *history]


def _lines(request: Request, history: list[Revision]) -> list[_Line]:
    """Return the lines of the last revision, or with -a of all."""
    lines: list[_Line] = []
    gone: list[_Line] = []
    for revision in history:
        source = revision
        if request.has("I") and not revision.is_deleted:
            source = _merged_from(request, revision)
        texts = _texts(request, revision)
        known = [line.text for line in lines]
        matcher = difflib.SequenceMatcher(None, known, texts, autojunk=False)
        made: list[_Line] = []
        for kind, i, i_end, j, j_end in matcher.get_opcodes():
            if kind == "equal":
                made += [line._replace(last=revision) for line in lines[i:i_end]]
                continue
            gone += lines[i:i_end]
            made += [_Line(text, source, revision) for text in texts[j:j_end]]
        lines = made
    return [*gone, *lines] if request.has("a") else lines


def _merged_from(request: Request, revision: Revision) -> Revision:
    """Return the revision from which a merge took a line, at the end of the chain."""
    seen = set[tuple[str, int]]()
    while (revision.path, revision.revision) not in seen:
        seen.add((revision.path, revision.revision))
        for how, other, _, end in integrations_of(
            request.state.database, path=revision.path, revision=revision.revision
        ):
            if not how.endswith(" from"):
                continue
            found = find_revision(request.state.database, path=other, number=end)
            if found is not None and not found.is_deleted:
                revision = found
                break
    return revision


def _texts(request: Request, revision: Revision) -> list[bytes]:
    if revision.is_deleted:
        return []
    found = lines_of(request.state.content.read(revision.digest))
    if len(found) > _MOST_LINES:
        raise NotInLab(f"annotate of more than {_MOST_LINES:,} lines")
    return found


def _show_annotated(request: Request, line: _Line) -> None:
    by_change = request.has("c") or request.has("i") or request.has("I")
    lower, upper = (
        revision.change if by_change else revision.revision
        for revision in (line.first, line.last)
    )
    user = ""
    if request.has("u"):
        row = request.state.database.execute(
            "SELECT user FROM changes WHERE change=?", line.first.change
        ).fetchone()
        user = str(row[0]) if row else ""
    text = octets.text_of(line.text)
    if request.is_tagged:
        record: dict[str, Value] = {"upper": upper, "lower": lower}
        if user:
            record |= {"user": user, "time": line.first.time}
        request.record({**record, "data": text})
        return
    span = f"{lower}-{upper}" if request.has("a") else f"{lower}"
    who = f" {user} {day(line.first.time)}" if user else ""
    request.send(
        "client-OutputText", {"data": octets.bytes_of(f"{span}:{who} ") + line.text}
    )


_ANNOTATE_USAGE = "annotate [-a -c -i | -I -q -t -u] file..."

COMMANDS = (
    Command(
        names=("annotate",),
        run=annotate,
        usage=_ANNOTATE_USAGE,
        flags="aciIqtu",
        absent="dT",
    ),
)
