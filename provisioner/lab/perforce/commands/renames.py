"""Find renames among missing and new files, for p4 reconcile.

Source: p4 help reconcile; the exchange is that of the client's published library. A
server pairs similar files as well; here their content has to be equal.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from provisioner.lab.perforce import filetypes, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.opening import is_taken
from provisioner.lab.perforce.holdings import Opened
from provisioner.lab.perforce.integrations import Resolve
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import Revision, find_revision

# Beyond so many comparisons of files of one size nothing of that size is paired.
_MOST_COMPARISONS = 100_000


def pair_moves(
    request: Request,
    client: Client,
    found: Sequence[Opened],
    sizes: Mapping[str, str],
) -> tuple[list[Opened], list[Resolve]]:
    """Turn deletes and adds with equal content into moves.

    `sizes` are those of the new files by local path, as reported by the client. Return
    the files to open, and the sources of the moved ones.
    """
    new: dict[str, list[int]] = {}
    for index, item in enumerate(found):
        size = sizes.get(client.local_path(item.client_path))
        if item.action == "add" and size is not None:
            new.setdefault(size, []).append(index)
    gone: dict[str, list[tuple[int, Revision]]] = {}
    for index, item in enumerate(found):
        if item.action != "delete" or is_taken(request.state.database, item):
            continue
        revision = find_revision(
            request.state.database, path=item.path, number=item.revision
        )
        if revision is not None and str(revision.size) in new:
            gone.setdefault(str(revision.size), []).append((index, revision))
    for size, losses in gone.items():
        if len(losses) * len(new[size]) <= _MOST_COMPARISONS:
            for index, revision in losses:
                _ask(request, client, found, index, revision, new[size])
    pairs: dict[int, int] = {}
    for answer in request.answers():
        if answer.func == replies.COMPARED and "index" in answer:
            # A client may answer what it likes.
            arrived, left = answer.integer("index"), answer.integer("item")
            if max(arrived, left) < len(found):
                pairs.setdefault(arrived, left)
    return _paired(found, pairs)


def _ask(
    request: Request,
    client: Client,
    found: Sequence[Opened],
    index: int,
    revision: Revision,
    candidates: Sequence[int],
) -> None:
    """Ask the client which new file equals the missing one, if any."""
    name = posixpath.basename(revision.path)
    ordered = sorted(candidates, key=lambda c: not found[c].path.endswith(f"/{name}"))
    request.send(
        "client-ExactMatch",
        {
            "type": filetypes.wire_code(revision.type, line_end=client.line_end),
            "digest": revision.digest,
            "fileSize": revision.size,
            "confirm": replies.COMPARED,
            "item": index,
            **{
                f"toFile{place}": client.local_path(found[candidate].client_path)
                for place, candidate in enumerate(ordered)
            },
            **{f"index{place}": candidate for place, candidate in enumerate(ordered)},
        },
    )


def _paired(
    found: Sequence[Opened], pairs: Mapping[int, int]
) -> tuple[list[Opened], list[Resolve]]:
    items, origins = list(found), list[Resolve]()
    for new, old in pairs.items():
        source = items[old]
        if (source.action, items[new].action) != ("delete", "add"):
            continue  # one of them is half of another pair already
        items[old] = source._replace(action="move/delete")
        items[new] = items[new]._replace(action="move/add", type=source.type)
        origins.append(
            Resolve(
                *(source.client, items[new].path, source.path, 0, source.revision),
                *(source.path, source.revision, "moved from"),
            )
        )
    return items, origins
