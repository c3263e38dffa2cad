"""p4 diff2: two sets of depot files held against each other, by the server.

Source: p4 help diff2; what a summary counts is that of `Diff::DiffSummary` in the
published client source. The keys of a tagged record are those that P4Java reads; that a
text follows it is inferred.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from provisioner.lab.perforce import filetypes
from provisioner.lab.perforce.commands.integrate import one_line_view
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, parse_file_argument
from provisioner.lab.perforce.merge3 import lines_of
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, revisions_at
from provisioner.lab.perforce.wire import Value

_MESSAGES = {
    "left only": 6364,
    "right only": 6365,
    "content": 6366,
    "types": 6367,
    "identical": 6368,
}
_LINES_AROUND = 3
_MOST_LINES = 20_000
"""What compares lines may take the square of their number."""

_NO_NEWLINE = "\\ No newline at end of file"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A revision of either set; None where a set has no such file."""

    left: Revision | None
    right: Revision | None

    @property
    def status(self) -> str:
        """Return how the two compare, in the words of the tagged record."""
        if self.left is None:
            return "right only"
        if self.right is None:
            return "left only"
        if self.left.digest != self.right.digest:
            return "content"
        return "identical" if self.left.type == self.right.type else "types"


def diff2(request: Request) -> None:
    """Answer `p4 diff2`.

    Raises: CommandError; NotInLab for a way to show differences that is missing.
    """
    if len(request.args) != 2:
        raise CommandError(7198, usage=_USAGE)
    style = request.options.get("d", "")
    if style not in ("", "s") and not (style[0] == "u" and style[1:].isdecimal()):
        if style != "u":
            raise NotInLab(f"diff2 -d{style}")
        style = f"u{_LINES_AROUND}"
    source, target = (parse_file_argument(request, text) for text in request.args)
    pairs = list(_pairs(request, source, target))
    if not pairs:
        request.say(source.nothing_found, argc=source.typed)
        return
    if request.has("q") or request.options.get("O") == "d":
        pairs = [pair for pair in pairs if pair.status != "identical"]
        if not pairs:
            request.say(6517, argc="")
    for pair in pairs:
        _tell(request, pair)
        if pair.status == "content" and not request.has("q"):
            _show(request, pair, style)


def _pairs(request: Request, source: FileSet, target: FileSet) -> Iterator[Pair]:
    """Yield the pairs of two sets, by the path of the second."""
    view = one_line_view(source, target)
    left = {}
    for place, revision in _placed(request, source):
        if (counterpart := view.to_client(place)) is not None:
            left[counterpart] = revision
    right = dict(_placed(request, target))
    for place in sorted({*left, *right}):
        yield Pair(left=left.get(place), right=right.get(place))


def _placed(request: Request, files: FileSet) -> Iterator[tuple[str, Revision]]:
    """Yield the files of a set, each with its path as the argument spells paths."""
    for revision in revisions_at(request.state.database, files):
        if revision.is_deleted:
            continue
        place: str | None = revision.path
        if files.in_client_syntax:
            assert files.client is not None
            place = files.client.view.to_client(revision.path)
        if place is not None:
            yield place, revision


def _tell(request: Request, pair: Pair) -> None:
    record: dict[str, Value] = {"status": pair.status}
    for end, revision in (("", pair.left), ("2", pair.right)):
        if revision is not None:
            record |= {
                f"depotFile{end}": revision.path,
                f"rev{end}": revision.revision,
                f"type{end}": revision.type,
            }
    shown = {
        f"{name}{end}": value
        for end, revision in _shown(pair)
        for name, value in (
            ("depotFile", revision.path),
            ("depotRev", f"#{revision.revision}"),
            ("type", revision.type),
        )
    }
    request.report(record, _MESSAGES[pair.status], **shown)


def _shown(pair: Pair) -> list[tuple[str, Revision]]:
    """Return the revisions that a line names; a single one is always the first."""
    there = [revision for revision in (pair.left, pair.right) if revision is not None]
    return list(zip(("", "2"), there, strict=False))


def _show(request: Request, pair: Pair, style: str) -> None:
    """Send where two contents differ; of what is no text only that they do."""
    assert pair.left is not None
    assert pair.right is not None
    both = (pair.left, pair.right)
    if not (request.has("t") or all(filetypes.is_text(each.type) for each in both)):
        request.info("(... files differ ...)")
        return
    old, new = (lines_of(request.state.content.read(each.digest)) for each in both)
    if max(len(old), len(new)) > _MOST_LINES:
        raise NotInLab(f"the text of a diff2 of more than {_MOST_LINES:,} lines")
    text = "".join(f"{line}\n" for line in _difference(old, new, style))
    request.send("client-OutputText", {"data": text})


def _difference(old: Sequence[bytes], new: Sequence[bytes], style: str) -> list[str]:
    # Lines that are everywhere are left out of the search: they would make it slow.
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=True)
    if style == "s":
        return _summary(matcher)
    if style:
        return list(_unified(matcher, old, new, int(style[1:])))
    return list(_normal(matcher, old, new))


def _summary(matcher: difflib.SequenceMatcher[bytes]) -> list[str]:
    """Return how many chunks and lines were added, deleted and changed."""
    chunks = dict.fromkeys(("insert", "delete", "replace"), 0)
    old_lines, new_lines = dict(chunks), dict(chunks)
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind != "equal":
            chunks[kind] += 1
            old_lines[kind] += i_end - i
            new_lines[kind] += j_end - j
    return [
        f"add {chunks['insert']} chunks {new_lines['insert']} lines",
        f"deleted {chunks['delete']} chunks {old_lines['delete']} lines",
        f"changed {chunks['replace']} chunks"
        f" {old_lines['replace']} / {new_lines['replace']} lines",
    ]


def _normal(
    matcher: difflib.SequenceMatcher[bytes], old: Sequence[bytes], new: Sequence[bytes]
) -> Iterator[str]:
    for kind, i, i_end, j, j_end in matcher.get_opcodes():
        if kind == "equal":
            continue
        if kind == "insert":
            yield f"{i}a{_span(j, j_end)}"
        elif kind == "delete":
            yield f"{_span(i, i_end)}d{j}"
        else:
            yield f"{_span(i, i_end)}c{_span(j, j_end)}"
        yield from _marked("< ", old[i:i_end])
        if kind == "replace":
            yield "---"
        yield from _marked("> ", new[j:j_end])


def _span(start: int, stop: int) -> str:
    return f"{stop}" if stop - start == 1 else f"{start + 1},{stop}"


def _unified(
    matcher: difflib.SequenceMatcher[bytes],
    old: Sequence[bytes],
    new: Sequence[bytes],
    around: int,
) -> Iterator[str]:
    for group in matcher.get_grouped_opcodes(around):
        (_, i, _, j, _), (_, _, i_end, _, j_end) = group[0], group[-1]
        first, second = i + (i_end > i), j + (j_end > j)
        yield f"@@ -{first},{i_end - i} +{second},{j_end - j} @@"
        for kind, i, i_end, j, j_end in group:
            if kind == "equal":
                yield from _marked(" ", old[i:i_end], end=_NO_NEWLINE)
            else:
                yield from _marked("-", old[i:i_end], end=_NO_NEWLINE)
                yield from _marked("+", new[j:j_end], end=_NO_NEWLINE)


def _marked(mark: str, lines: Sequence[bytes], *, end: str = "") -> Iterator[str]:
    """Yield lines behind a mark, and `end` behind one that was not ended."""
    for line in lines:
        text = line.decode("utf-8", "surrogateescape")
        yield mark + text.removesuffix("\n")
        if end and not text.endswith("\n"):
            yield end


_USAGE = "diff2 [-d<flags> -Od -q -t] fromFile[rev] toFile[rev]"

COMMANDS = (
    Command(
        names=("diff2",),
        run=diff2,
        usage=_USAGE,
        flags="qt",
        valued="dO",
        absent="bSPAu",
    ),
)
