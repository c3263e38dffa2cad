"""p4 diff2: compare two sets of depot files on the server.

Source: p4 help diff2. The keys of a tagged record are those that P4Java reads; that a
text follows it is inferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from provisioner.lab.perforce.commands.integrate import one_line_view
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.textdiffs import diff_style, show_difference
from provisioner.lab.perforce.filespec import FileSet, parse_file_argument
from provisioner.lab.perforce.messages import CommandError
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


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A revision of each set; None if the set has no such file."""

    left: Revision | None
    right: Revision | None

    @property
    def status(self) -> str:
        """Return how the two compare, as in the tagged record."""
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
    style = diff_style(request)
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
            assert pair.left is not None
            assert pair.right is not None
            show_difference(request, pair.left, pair.right, style=style)


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
    """Yield the files of a set, each with its path as the argument spells it."""
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
    """Return the revisions that a line names; a single one always comes first."""
    there = [revision for revision in (pair.left, pair.right) if revision is not None]
    return list(zip(("", "2"), there, strict=False))


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
