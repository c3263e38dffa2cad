r"""p4 grep and verify: search and check the content of revisions.

Source: p4 help grep, p4 help verify; "p4 verify" of the command reference, for -S and
what goes with it; the keys of a matching line are those that P4Java
reads (FileLineMatch). Patterns are Python's, which have all of a server's except `\<`
and `\>`; these are translated.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator

from provisioner.lab.perforce import filetypes, octets
from provisioner.lab.perforce.commands.files import revisions_of
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.merge3 import lines_of
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, revisions_in
from provisioner.lab.perforce.shelves import SHELF_MARK, all_shelved
from provisioner.lab.perforce.wire import Value

_LONGEST_LINE = 4096


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
    """Yield the lines to show, in order, with the reason: -A, -B and -C."""
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


def verify(request: Request) -> None:
    """Answer `p4 verify`: compare each revision's content with its digest.

    With -S these are the files of shelves, and no others. Neither -s nor -z goes with
    it. What a server says instead of a revision is not documented.
    """
    if not request.state.is_admin(request.user):
        raise CommandError(6185)
    if request.has("S") and (request.has("s") or request.has("z")):
        raise CommandError(7198, usage=_VERIFY_USAGE)
    limit, count = request.number("m", default=0), 0
    # With -z, content that several revisions share is read once.
    known: dict[str, tuple[str | None, int]] = {}
    for wanted in file_sets(request):
        there = _verified(request, wanted)
        if not there:
            request.say(wanted.nothing_found, argc=wanted.typed)
        for revision in there:
            if limit and count == limit:
                return
            count += 1
            if revision.digest not in known:
                known[revision.digest] = _computed(request, revision)
            _verify_one(request, revision, *known[revision.digest])
            if not request.has("z"):
                known.clear()


def _verified(request: Request, wanted: FileSet) -> list[Revision]:
    """Return the revisions, or the shelved files, that have content."""
    if not request.has("S"):
        found = revisions_in(request.state.database, wanted)
        return [revision for revision in found if not revision.is_deleted]
    of_one = wanted.upper.number if wanted.upper.kind == "shelf" else None
    return [
        file.as_revision
        for file in all_shelved(request.state.database)
        if wanted.has_depot_path(file.path)
        and not file.is_delete
        and of_one in (None, file.change)
    ]


def _verify_one(
    request: Request, revision: Revision, computed: str | None, size: int
) -> None:
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
        is_shelved = request.has("S")
        request.record(
            {
                "depotFile": revision.path,
                **({} if is_shelved else {"rev": revision.revision}),
                "change": revision.change,
                **named,
                **({"status": status} if status else {}),
            }
        )
        return
    request.say(
        6874 if status else 6506,
        depotFile=revision.path,
        depotRev=f"{SHELF_MARK}{revision.change}"
        if request.has("S")
        else f"#{revision.revision}",
        change=f"change {revision.change}",
        status=status,
        **named,
    )


def _computed(request: Request, revision: Revision) -> tuple[str | None, int]:
    """Return the digest and size of the stored content; None if there is none."""
    digest, size = hashlib.md5(usedforsecurity=False), 0
    try:
        for data in request.state.content.chunks(revision.digest):
            digest.update(data)
            size += len(data)
    except FileNotFoundError:
        return None, 0
    return digest.hexdigest().upper(), size


# How many files a server takes at a time makes no difference here (-b).
_VERIFY_USAGE = "verify [-q -s -z | -S -q] [-m max] [-b batch] file..."
_GREP_USAGE = (
    "grep [-a -i -n -s -t] [-A after -B before -C context] [-v | -l | -L] [-F | -G]"
    " -e pattern file..."
)

COMMANDS = (
    Command(
        names=("grep",), run=grep, usage=_GREP_USAGE, flags="ainstvlLFG", valued="ABCe"
    ),
    Command(
        names=("verify",),
        run=verify,
        usage=_VERIFY_USAGE,
        flags="Sqsz",
        valued="bm",
        absent="ARUXZrtuv",
    ),
)
