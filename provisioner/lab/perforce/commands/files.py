"""Reports on files: files, have, where, dirs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from provisioner.lab.perforce import case, hotmessages, paths
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.holdings import (
    count_have,
    have_in,
)
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    Revision,
    revisions_at,
    revisions_in,
)
from provisioner.lab.perforce.wire import Value


def files(request: Request) -> None:
    """Answer `p4 files`."""
    limit = request.number("m", default=0)
    for wanted in file_sets(request):
        found = 0
        chosen: Iterable[Revision] = revisions_of(request, wanted)
        if request.has("a"):
            chosen = revisions_in(request.state.database, wanted)
        for revision in chosen:
            if request.has("e") and revision.is_deleted:
                continue
            report_revision(request, revision)
            found += 1
            if found == limit:
                break
        if not found:
            request.say(wanted.nothing_found, argc=wanted.typed)


def report_revision(request: Request, revision: Revision, **more: Value) -> None:
    """Report a revision as `p4 files`, `print` and `annotate` head it."""
    request.report(
        {
            "depotFile": revision.path,
            "rev": revision.revision,
            "change": revision.change,
            "action": revision.action,
            "type": revision.type,
            "time": revision.time,
            **more,
        },
        6379,
        depotFile=revision.path,
        depotRev=f"#{revision.revision}",
        action=revision.action,
        change=f"change {revision.change}",
        type=revision.type,
    )


def revisions_of(request: Request, wanted: FileSet) -> list[Revision]:
    """Return the revisions of a set.

    Raises: CommandError if they exceed the user's limits.
    """
    found = revisions_at(request.state.database, wanted)
    request.check_limits(scanned=len(found), results=len(found))
    return found


def have(request: Request) -> None:
    """Answer `p4 have`."""
    client = request.get_client()
    is_fast, is_tagged = not request.connection.is_logged, request.is_tagged
    for wanted in file_sets(request, default=""):
        if request.is_limited:
            count = count_have(request.state.database, client=client.name)
            results = count if wanted.is_whole_client else 0
            request.check_limits(scanned=count, results=results)
        haves = have_in(request.state.database, wanted, client=client.name)
        found = False
        for batch in hotmessages.batches(haves):
            found = True
            if is_fast:
                messages = hotmessages.had(batch, client=client, is_tagged=is_tagged)
                request.connection.send_raw(messages)
                continue
            for path, place, number, synced in batch:
                local = client.local_path(place)
                request.report(
                    {
                        "depotFile": path,
                        "clientFile": place,
                        "path": local,
                        "haveRev": number,
                        "syncTime": synced,
                    },
                    6391,
                    depotFile=path,
                    haveRev=f"#{number}",
                    lp=local,
                )
        if not found:
            request.say(6520, argc=wanted.typed)


def where(request: Request) -> None:
    """Answer `p4 where`: one record for a file, one per view line for a pattern."""
    client = request.get_client()
    for wanted in file_sets(request, default=""):
        mappings = list(_mappings(client, wanted))
        if not mappings:
            request.say(6511, argc=wanted.typed)
        for flag, depot_path, client_path in mappings:
            local = client.local_path(client_path)
            record: dict[str, Value] = {
                "depotFile": depot_path,
                "clientFile": client_path,
                "path": local,
            }
            if flag == "-":
                record = {"unmap": "", **record}
            request.report(
                record,
                6508,
                mapFlag=flag,
                depotFile=depot_path,
                clientFile=client_path,
                localPath=local,
            )


def _mappings(client: Client, wanted: FileSet) -> Iterable[tuple[str, str, str]]:
    pattern = wanted.pattern
    if not paths.has_wildcard(pattern):
        if wanted.in_client_syntax:
            depot_path = client.view.to_depot(pattern)
            return [("", depot_path, pattern)] if depot_path else []
        return [
            # Where case does not count, a path is told as the view spells it, as
            # P4.Map does.
            ("", client.view.to_depot(place) or pattern, place)
            for place in client.view.all_to_client(pattern)
        ]
    return _joined_lines(client, wanted)


def _joined_lines(client: Client, wanted: FileSet) -> Iterable[tuple[str, str, str]]:
    """Yield each view line restricted to a pattern.

    Exact if pattern and line end in `...`; for other wildcards the narrower of the two
    literal parts decides.
    """
    prefix = paths.literal_prefix(wanted.pattern)
    rest = wanted.pattern[len(prefix) :]
    for line in client.view.lines:
        near, far = line.left, line.right
        if wanted.in_client_syntax:
            near, far = far, near
        near_prefix, far_prefix = paths.literal_prefix(near), paths.literal_prefix(far)
        if case.begins(prefix, near_prefix) and near == near_prefix + "...":
            tail = prefix[len(near_prefix) :] + rest
            near, far = near_prefix + tail, far_prefix + tail
        elif not case.begins(near_prefix, prefix):
            continue
        depot, place = (far, near) if wanted.in_client_syntax else (near, far)
        yield line.flag, depot, place


def dirs(request: Request) -> None:
    """Answer `p4 dirs`: the matching directories that contain a file."""
    for wanted in file_sets(request):
        depth = wanted.pattern.count("/")
        shown: dict[str, str] = {}
        for path in _files_below(request, wanted):
            name = "/".join(path.split("/")[: depth + 1])
            shown.setdefault(case.folded(name), name)
        for _, name in sorted(shown.items()):
            if request.is_tagged:
                request.record({"dir": name})
            else:
                request.say(6353, dirName=name)
        if not shown:
            request.say(wanted.nothing_found, argc=wanted.typed)


def _files_below(request: Request, directories: FileSet) -> Iterator[str]:
    """Yield the files below directories: the client's, or those in the depot."""
    below = replace(directories, pattern=f"{directories.pattern}/...")
    if request.has("H"):
        client = request.get_client()
        for have in have_in(request.state.database, below, client=client.name):
            yield have.path
        return
    for revision in revisions_of(request, below):
        if request.has("D") or not revision.is_deleted:
            yield revision.path


COMMANDS = (
    Command(
        names=("files",),
        run=files,
        usage="files [-a] [-e] [-m max] file...",
        flags="ae",
        valued="m",
        absent="AUi",
    ),
    Command(
        names=("have",), run=have, usage="have [file...]", uses_client=True, absent="h"
    ),
    Command(
        names=("where",),
        run=where,
        usage="where [file...]",
        uses_client=True,
        absent="T",
    ),
    Command(
        names=("dirs",),
        run=dirs,
        usage="dirs [-D -H] dir...",
        flags="DH",
        absent="CSi",
        uses_client=True,
    ),
)
