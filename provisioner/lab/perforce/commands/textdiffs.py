"""Differences between two revisions, shown by the server: diff2 and describe.

Source: p4 help diff2, p4 help describe; a summary counts like `Diff::DiffSummary` in
the published client source.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from provisioner.lab.perforce import filetypes, octets
from provisioner.lab.perforce.merge3 import lines_of
from provisioner.lab.perforce.messages import NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision

_LINES_AROUND = 3
_MOST_LINES = 20_000
"""What compares lines may take the square of their number."""

_NO_NEWLINE = "\\ No newline at end of file"


def diff_style(request: Request) -> str:
    """Return the style of differences from `-d`: "", "s", or "u" with a number of
    lines.

    Raises: NotInLab.
    """
    style = request.options.get("d", "")
    if style in ("", "s") or (style[0] == "u" and style[1:].isdecimal()):
        return style
    if style != "u":
        raise NotInLab(f"{request.command} -d{style}")
    return f"u{_LINES_AROUND}"


def show_difference(
    request: Request, old: Revision | None, new: Revision, *, style: str
) -> None:
    """Send the differences of two texts; of other contents only whether they differ.

    Without an old content all of the new one is added. P4Java takes text only from
    commands without tags, so tagged ones send it as info.

    Raises: NotInLab if the texts are too long.
    """
    sides = [side for side in (old, new) if side is not None]
    if not (request.has("t") or all(filetypes.is_text(x.type) for x in sides)):
        request.info("(... files differ ...)")
        return
    read = request.state.content.read
    before = lines_of(read(old.digest)) if old else []
    after = lines_of(read(new.digest))
    if max(len(before), len(after)) > _MOST_LINES:
        raise NotInLab(
            f"the text of a {request.command} of more than {_MOST_LINES:,} lines"
        )
    text = "".join(f"{line}\n" for line in _difference(before, after, style))
    if request.is_tagged:
        request.info(text)
    else:
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
    """Yield lines behind a mark, and `end` after one without a line end."""
    for line in lines:
        text = octets.text_of(line)
        yield mark + text.removesuffix("\n")
        if end and not text.endswith("\n"):
            yield end
