"""p4 reconcile and status: compare the files on disk with the have list.

Source: p4 help reconcile. Only what is "not in depot" is added: a file that exists
there and is not had is not reported; `-k` takes it into the have list.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from dataclasses import replace

from provisioner.lab.perforce import case, filetypes, paths, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.cleaning import clean
from provisioner.lab.perforce.commands.opening import (
    check_writeable,
    detected_types,
    insert_opened,
    new_type,
    report_opened,
    target_change,
)
from provisioner.lab.perforce.commands.rebuilding import rebuild_have_list
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.renames import pair_moves
from provisioner.lab.perforce.commands.walking import walk
from provisioner.lab.perforce.filespec import FileSet, Point, file_sets
from provisioner.lab.perforce.holdings import Have, Opened, have_in, opened_by
from provisioner.lab.perforce.integrations import Resolve, put_resolves
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    find_head,
    find_revision,
    known_path,
    revisions_at,
)
from provisioner.lab.perforce.wire import Value


def reconcile(request: Request) -> None:
    """Answer `p4 reconcile`, by default for the current directory."""
    _reconcile(request, is_preview=request.has("n"))


def status(request: Request) -> None:
    """Answer `p4 status`: a preview, unless `-A` opens the files."""
    _reconcile(request, is_preview=not request.has("A"))


def clean_files(request: Request) -> None:
    """Answer `p4 clean`."""
    _reconcile(request, is_preview=True, is_cleaning=True)


def _reconcile(
    request: Request, *, is_preview: bool, is_cleaning: bool = False
) -> None:
    is_cleaning = is_cleaning or request.has("w")
    is_preview = is_preview or is_cleaning
    client = request.get_client()
    if request.has("k"):
        if not request.options.keys() <= {"k", "n", "l"}:
            raise CommandError(7198, usage="reconcile -k [-l -n] [file...]")
        for wanted in file_sets(request, default="..."):
            rebuild_have_list(request, client, wanted)
        return
    if not is_preview:
        check_writeable(client)
    change = target_change(request)
    limited = any(request.has(option) for option in "aed")
    for wanted in file_sets(request, default="..."):
        reopened = [] if is_cleaning else _changed_minds(request, client, wanted)
        found, sizes = [], dict[str, str]()
        if not limited or request.has("e") or request.has("d"):
            found += _edits_and_deletes(request, client, wanted, change)
        if not limited or request.has("a"):
            sizes = walk(request, client, wanted)
            found += _adds(request, client, wanted, change, sizes)
        found = [item for item in found if _is_chosen(request, item)]
        if not is_preview:
            found = _permitted(request, wanted, found)
        origins: list[Resolve] = []
        if not is_cleaning:
            found, origins = pair_moves(request, client, found, sizes)
        request.send("client-ReconcileFlush", {})
        found = [item for item in reopened if _is_chosen(request, item)] + found
        if not found:
            request.say(6827, argc=wanted.typed)
        if is_cleaning:
            clean(request, client, found)
            continue
        if not is_preview:
            found = _open(request, found, origins)
        for item in found:
            _report(request, client, item, is_preview=is_preview)


def _permitted(request: Request, wanted: FileSet, found: list[Opened]) -> list[Opened]:
    """Return the files that the user may open, and whether there are others."""
    access = request.access()
    permitted = [item for item in found if access.allows("open", item.path)]
    if len(permitted) < len(found):
        request.say(6513, argc=wanted.typed)
    return permitted


def _open(
    request: Request, found: list[Opened], origins: list[Resolve]
) -> list[Opened]:
    """Open files; those that are open already get their new action."""
    opened = insert_opened(request, found)
    with request.state.database.writing():
        request.state.database.execute_many(
            "UPDATE opened SET action=? WHERE client=? AND path=?",
            ((item.action, item.client, item.path) for item in opened),
        )
        put_resolves(request.state.database, origins)
    return opened


def _changed_minds(request: Request, client: Client, wanted: FileSet) -> list[Opened]:
    """Return missing files opened for edit, and existing ones opened for delete."""
    candidates = [
        item
        for item in opened_by(request.state.database, client=client.name).values()
        if item.action in ("edit", "delete")
        and wanted.has_file(path=item.path, client_path=item.client_path)
    ]
    for index, item in enumerate(candidates):
        request.send(
            "client-CheckFile",
            {
                "path": client.local_path(item.client_path),
                "type": filetypes.wire_code(item.type, line_end=client.line_end),
                "confirm": replies.COMPARED,
                "item": index,
            },
        )
    found = []
    for answer in request.answers():
        if answer.func != replies.COMPARED:
            continue
        item = candidates[answer.integer("item")]
        action = "delete" if answer.text("status") == "missing" else "edit"
        if action != item.action:
            found.append(item._replace(action=action))
    return found


def _is_chosen(request: Request, item: Opened) -> bool:
    chosen = [option for option in "aed" if request.has(option)]
    return not chosen or item.action[0] in chosen


def _report(
    request: Request, client: Client, item: Opened, *, is_preview: bool
) -> None:
    if not is_preview:
        report_opened(request, client, item)
        return
    local = client.local_path(item.client_path)
    number = item.revision or 1
    record: dict[str, Value] = {"depotFile": item.path, "clientFile": local}
    if request.has("l") or request.command == "status":
        record["localFile"] = _relative(local, request.cwd)
    record |= {"workRev": number, "action": item.action, "type": item.type}
    if request.is_tagged:
        request.record(record)
    elif request.command == "status" or request.has("l"):
        request.say(
            6828,
            localfile=_relative(local, request.cwd),
            action=item.action,
            depotFile=item.path,
            workRev=f"#{number}",
        )
    else:
        request.say(6440, depotFile=item.path, workRev=f"#{number}", action=item.action)


def _relative(local: str, cwd: str) -> str:
    return posixpath.relpath(local, cwd) if local.startswith("/") else local


def _edits_and_deletes(
    request: Request, client: Client, wanted: FileSet, change: int
) -> list[Opened]:
    """Return the files whose content differs or that are missing."""
    database = request.state.database
    busy = opened_by(database, client=client.name)
    candidates: list[tuple[Have, str]] = []
    had = replace(wanted, upper=Point(kind="client", name=client.name), access=None)
    revisions = {r.path: r for r in revisions_at(database, had)}
    for have in have_in(database, wanted, client=client.name):
        # A file had from outside the view is in the set by its place alone.
        revision = revisions.get(have.path) or find_revision(
            database, path=have.path, number=have.revision
        )
        if have.path in busy or revision is None:
            continue
        variables: dict[str, Value] = {
            "path": client.local_path(have.client_path),
            "type": filetypes.wire_code(revision.type, line_end=client.line_end),
            "digest": revision.digest,
            "confirm": replies.RECONCILED,
            "item": len(candidates),
        }
        if filetypes.base_of(revision.type) == "binary":
            variables["fileSize"] = revision.size
        if request.has("m"):
            variables["time"] = _comparable_time(client, have, revision.modified)
        request.send("client-ReconcileEdit", variables)
        candidates.append((have, revision.type))
    actions = {"missing": "delete", "exists": "edit"}
    found = []
    for answer in request.answers():
        action = actions.get(answer.text("status"))
        if answer.func != replies.RECONCILED or action is None:
            continue
        have, kind = candidates[answer.integer("item")]
        found.append(
            Opened(
                client.name,
                have.path,
                have.client_path,
                have.revision,
                action,
                kind,
                request.user,
                change,
            )
        )
    return found


def _comparable_time(client: Client, have: Have, modified: int) -> int:
    """Return the time of an untouched file on disk."""
    return modified if "modtime" in client.options else have.synced


def _adds(
    request: Request,
    client: Client,
    wanted: FileSet,
    change: int,
    local_paths: Iterable[str],
) -> list[Opened]:
    """Return the files on disk that neither the client nor the depot has."""
    database = request.state.database
    busy = opened_by(database, client=client.name)
    haves = have_in(database, wanted, client=client.name)
    known = {case.folded(have.client_path) for have in haves}
    known |= {case.folded(item.client_path) for item in busy.values()}
    candidates: dict[str, str] = {}
    for local in local_paths:
        place = client.from_local(paths.escape(local))
        path = client.view.to_depot(place)
        if case.folded(place) in known or path is None:
            continue
        path = known_path(database, path)
        if not wanted.has_file(path=path, client_path=place):
            continue
        head = find_head(database, path=path)
        if head is not None and not head.is_deleted:
            # What a server says of it is not known; this is what `add` says.
            request.info(f"{path} - can't add existing file")
            continue
        candidates[place] = path
    types = detected_types(
        request, client, sorted(candidates), honors_ignore=not request.has("I")
    )
    return [
        Opened(
            *(client.name, candidates[place], place, 0, "add"),
            new_type(request, candidates[place], kind),
            *(request.user, change),
        )
        for place, kind in types.items()
    ]


_FLAGS = "naedfIlmkw"

COMMANDS = (
    Command(
        names=("reconcile", "rec"),
        run=reconcile,
        usage=(
            "reconcile [-n -a -e -d -f -I -l -m -w] [-c change] [file...] |"
            " -k [-l -n] [file...]"
        ),
        flags=_FLAGS,
        valued="c",
        absent="tKM",
        uses_client=True,
    ),
    Command(
        names=("clean",),
        run=clean_files,
        usage="clean [-n -a -e -d -I -l -m] [file...]",
        flags="naedIlm",
        absent="K",
        uses_client=True,
    ),
    Command(
        names=("status",),
        run=status,
        usage="status [-A -a -e -d -f -I -m] [-c change] [file...]",
        flags=_FLAGS + "A",
        valued="c",
        absent="s",
        uses_client=True,
    ),
)
