"""p4 grep, annotate and verify: what the content of revisions says.

Source: p4 help grep, annotate and verify; the keys of records are those that P4Java
reads (FileLineMatch, FileAnnotation). Patterns are Python's, which know all that a
server's do but `\\<` and `\\>`; these are translated.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from provisioner.lab.perforce import filetypes, octets
from provisioner.lab.perforce.commands.files import revisions_of
from provisioner.lab.perforce.commands.forms import day
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.integrations import integrations_of
from provisioner.lab.perforce.merge3 import lines_of
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_revision, revisions_in
from provisioner.lab.perforce.wire import Value

_LONGEST_LINE = 4096
_MOST_LINES = 20_000


# --- grep


def grep(request: Request) -> None:
    """Answer `p4 grep`."""
    if not request.has("e"):
        raise CommandError(7198, usage=_GREP_USAGE)
    pattern = _compiled(request)
    for wanted in file_sets(request):
        found: Iterable[Revision] = revisions_of(request, wanted)
        if request.has("a"):
            found = revisions_in(request.state.database, wanted)
        there = [revision for revision in found if not revision.is_deleted]
        if not there:
            request.say(wanted.nothing_found, argc=wanted.typed)
            continue
        searched = [r for r in there if request.has("t") or filetypes.is_text(r.type)]
        if not searched:
            request.say(6684, argc=wanted.typed)
        for revision in searched:
            _grep_one(request, revision, pattern)


def _compiled(request: Request) -> re.Pattern[bytes]:
    text = octets.bytes_of(request.options["e"])
    if request.has("F"):
        text = re.escape(text)
    else:
        text = text.replace(rb"\<", rb"\b(?=\w)").replace(rb"\>", rb"\b(?<=\w)")
    try:
        return re.compile(text, re.IGNORECASE if request.has("i") else 0)
    except re.error as error:
        raise CommandError(7198, usage=f"grep: {error}") from error


def _grep_one(request: Request, revision: Revision, pattern: re.Pattern[bytes]) -> None:
    lines = [
        line.rstrip(b"\r\n")
        for line in lines_of(request.state.content.read(revision.digest))
    ]
    for number, line in enumerate(lines, start=1):
        if len(line) > _LONGEST_LINE:
            if not request.has("s"):
                _say_too_long(request, revision, number)
            return
    hits = {
        index
        for index, line in enumerate(lines)
        if bool(pattern.search(line)) != request.has("v")
    }
    if request.has("l") or request.has("L"):
        if bool(hits) == request.has("l"):
            request.report(
                {"depotFile": revision.path, "rev": revision.revision},
                6676,
                depotFile=revision.path,
                depotRev=revision.revision,
            )
        return
    for index, kind in _with_context(request, hits, len(lines)):
        _show_line(request, revision, index + 1, lines[index], kind)


def _say_too_long(request: Request, revision: Revision, number: int) -> None:
    request.say(
        6678,
        depotFile=revision.path,
        depotRev=revision.revision,
        linenumber=number,
        maxlinelength=_LONGEST_LINE,
    )


def _with_context(
    request: Request, hits: set[int], count: int
) -> Iterator[tuple[int, str]]:
    """Yield which lines to show, in their order, and why: -A, -B and -C."""
    around = request.number("C", default=0)
    after = request.number("A", default=around)
    before = request.number("B", default=around)
    for index in range(count):
        if index in hits:
            yield index, "match"
        elif any(hit in hits for hit in range(index + 1, index + before + 1)):
            yield index, "before"
        elif any(hit in hits for hit in range(index - after, index)):
            yield index, "after"


def _show_line(
    request: Request, revision: Revision, number: int, line: bytes, kind: str
) -> None:
    text = octets.text_of(line)
    record: dict[str, Value] = {
        "depotFile": revision.path,
        "rev": revision.revision,
        **({"line": number} if request.has("n") else {}),
        "matchedLine": text,
        "type": kind,
    }
    mark = ":" if kind == "match" else "-"
    named: dict[str, Value] = {
        "depotFile": revision.path,
        "depotRev": revision.revision,
    }
    if request.has("n"):
        request.report(
            record,
            6677,
            **named,
            separator1=mark,
            linenumber=number,
            separator2=mark,
            linecontent=text,
        )
    else:
        request.report(record, 6675, **named, separator=mark, linecontent=text)


# --- annotate


class _Line(NamedTuple):
    """A line, and the revisions that brought it and had it last."""

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
    """Return the revisions of each file, the oldest first; deleted files with -a."""
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
        request.report(
            {
                "depotFile": head.path,
                "rev": head.revision,
                "change": head.change,
                "action": head.action,
                "type": head.type,
                "time": head.time,
            },
            6379,
            depotFile=head.path,
            depotRev=f"#{head.revision}",
            action=head.action,
            change=f"change {head.change}",
            type=head.type,
        )
    if request.has("i"):
        history = _with_origins(request, history)
    for line in _lines(request, history):
        _show_annotated(request, line)


def _with_origins(request: Request, history: list[Revision]) -> list[Revision]:
    """Return a history that goes on, backwards, in the file it was branched from."""
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
    """Return the revision that a merge brought, at the end of the chain."""
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


# --- verify


def verify(request: Request) -> None:
    """Answer `p4 verify`: hold each revision's content against its digest."""
    if not request.state.is_admin(request.user):
        raise CommandError(6185)
    limit, count = request.number("m", default=0), 0
    for wanted in file_sets(request):
        there = [
            revision
            for revision in revisions_in(request.state.database, wanted)
            if not revision.is_deleted
        ]
        if not there:
            request.say(wanted.nothing_found, argc=wanted.typed)
        for revision in there:
            if limit and count == limit:
                return
            count += 1
            _verify_one(request, revision)


def _verify_one(request: Request, revision: Revision) -> None:
    computed, size = _computed(request, revision)
    status = ""
    if computed is None:
        status = "MISSING!"
    elif computed != revision.digest or (request.has("s") and size != revision.size):
        status = "BAD!"
    if request.has("q") and not status:
        return
    digest = computed or revision.digest
    named: dict[str, Value] = {
        "action": revision.action,
        "type": revision.type,
        "digest": digest,
    }
    if request.is_tagged:
        request.record(
            {
                "depotFile": revision.path,
                "rev": revision.revision,
                "change": revision.change,
                **named,
                **({"status": status} if status else {}),
            }
        )
        return
    request.say(
        6874 if status else 6506,
        depotFile=revision.path,
        depotRev=f"#{revision.revision}",
        change=f"change {revision.change}",
        status=status,
        **named,
    )


def _computed(request: Request, revision: Revision) -> tuple[str | None, int]:
    """Return the digest and size of what is there; None where nothing is."""
    digest, size = hashlib.md5(usedforsecurity=False), 0
    try:
        for data in request.state.content.chunks(revision.digest):
            digest.update(data)
            size += len(data)
    except FileNotFoundError:
        return None, 0
    return digest.hexdigest().upper(), size


_GREP_USAGE = (
    "grep [-a -i -n -s -t] [-A after -B before -C context] [-v | -l | -L] [-F | -G]"
    " -e pattern file..."
)
_ANNOTATE_USAGE = "annotate [-a -c -i | -I -q -t -u] file..."

COMMANDS = (
    Command(
        names=("grep",), run=grep, usage=_GREP_USAGE, flags="ainstvlLFG", valued="ABCe"
    ),
    Command(
        names=("annotate",),
        run=annotate,
        usage=_ANNOTATE_USAGE,
        flags="aciIqtu",
        absent="dT",
    ),
    Command(
        names=("verify",),
        run=verify,
        # How many files a server takes at a time makes no difference here (-b).
        usage="verify [-q -s] [-m max] [-b batch] file...",
        flags="qs",
        valued="bm",
        absent="ARSUXZrtuvz",
    ),
)
