"""p4 revert, reopen."""

from __future__ import annotations

from provisioner.lab.perforce import filetypes, paths, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.opening import target_change, wanted_type
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import remove_file, send_file
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.holdings import Opened, opened_by
from provisioner.lab.perforce.integrations import drop_resolves, resolves_of
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import find_revision


def revert(request: Request) -> None:
    """Answer `p4 revert`."""
    if request.has("C"):
        _revert_foreign(request)
        return
    client = request.get_client()
    change = target_change(request) if request.has("c") else None
    if not request.args and not request.has("a"):
        raise CommandError(7198, usage="revert [-a -k -n -w] [-c change] file...")
    for wanted in file_sets(request, default=""):
        chosen = [
            item
            for item in opened_by(request.state.database, client=client.name).values()
            if wanted.has_file(path=item.path, client_path=item.client_path)
            and change in (None, item.change)
        ]
        if request.has("a"):
            chosen = _unchanged(request, client, chosen)
        else:
            chosen = _with_other_halves(request, client, chosen)
            if not chosen:
                request.say(6526, argc=wanted.typed)
        _revert_files(request, client, chosen, keeps_files=request.has("k"))


def _revert_foreign(request: Request) -> None:
    """Revert files of another client on the server only, for administrators."""
    if not request.state.is_admin(request.user):
        raise CommandError(6185)
    name = request.options["C"]
    change = request.options.get("c")
    for argument in request.args:
        pattern, _ = paths.split_revision(argument)
        chosen = [
            item
            for item in opened_by(request.state.database, client=name).values()
            if paths.pattern_matches(pattern, item.path)
            or paths.pattern_matches(pattern, item.client_path)
            if change is None or str(item.change or "default") == change
        ]
        if not chosen:
            request.say(6526, argc=argument)
        _revert_files(request, None, chosen, keeps_files=True)


def _unchanged(request: Request, client: Client, chosen: list[Opened]) -> list[Opened]:
    """Return the files opened for edit whose content equals their revision."""
    for index, item in enumerate(chosen):
        revision = find_revision(
            request.state.database, path=item.path, number=item.revision
        )
        if item.action != "edit" or revision is None or revision.type != item.type:
            continue
        request.send(
            "client-CheckFile",
            {
                "path": client.local_path(item.client_path),
                "type": filetypes.wire_code(item.type, line_end=client.line_end),
                "digest": revision.digest,
                "confirm": replies.COMPARED,
                "item": index,
            },
        )
    return [
        chosen[answer.integer("item")]
        for answer in request.answers()
        if answer.func == replies.COMPARED and answer.text("status") == "same"
    ]


def _revert_files(
    request: Request, client: Client | None, chosen: list[Opened], *, keeps_files: bool
) -> None:
    is_preview = request.has("n")
    for item in chosen:
        is_removed = not keeps_files and (
            item.action in ("move/add", "branch") or (item.is_add and request.has("w"))
        )
        outcome, line = (
            ("deleted", 6460) if is_removed else _outcome(item, keeps_files=keeps_files)
        )
        if client is not None and not keeps_files and not is_preview:
            if item.revision:
                _restore(request, client, item)
            elif is_removed:
                local = client.local_path(item.client_path)
                remove_file(
                    request, client, local=local, file_type=item.type, confirm={}
                )
        place = client.local_path(item.client_path) if client else item.client_path
        request.report(
            {
                "depotFile": item.path,
                "clientFile": place,
                "haveRev": item.revision or "none",
                "oldAction": item.action,
                "action": outcome,
            },
            line,
            depotFile=item.path,
            haveRev=f"#{item.revision or 'none'}",
            action=item.action,
        )
    request.settle()
    if is_preview:
        return
    with request.state.database.writing():
        request.state.database.execute_many(
            "DELETE FROM opened WHERE client=? AND path=?",
            ((item.client, item.path) for item in chosen),
        )
        for item in chosen:
            drop_resolves(request.state.database, client=item.client, paths=[item.path])


def _with_other_halves(
    request: Request, client: Client, chosen: list[Opened]
) -> list[Opened]:
    """Return the files, including the other half of each move."""
    opened = opened_by(request.state.database, client=client.name)
    paths_of = {item.path for item in chosen}
    for origin in resolves_of(request.state.database, client=client.name):
        pair = {origin.path, origin.other}
        if origin.how == "moved from" and pair & paths_of:
            paths_of |= pair
    return [item for path, item in opened.items() if path in paths_of]


def _outcome(item: Opened, *, keeps_files: bool) -> tuple[str, int]:
    if item.is_add:
        return "abandoned", 6458
    if keeps_files:
        return "cleared", 6459
    return "reverted", 6461


def _restore(request: Request, client: Client, item: Opened) -> None:
    revision = find_revision(
        request.state.database, path=item.path, number=item.revision
    )
    if revision is not None and not revision.is_deleted:
        send_file(
            request,
            client,
            revision,
            local=client.local_path(item.client_path),
            confirm={},
            clobber=True,
        )


def reopen(request: Request) -> None:
    """Answer `p4 reopen`: move files to another change or type."""
    client = request.get_client()
    change = target_change(request) if request.has("c") else None
    for wanted in file_sets(request):
        chosen = [
            item
            for item in opened_by(request.state.database, client=client.name).values()
            if wanted.has_file(path=item.path, client_path=item.client_path)
        ]
        if not chosen:
            request.say(6526, argc=wanted.typed)
        moved = [
            item._replace(
                change=item.change if change is None else change,
                type=wanted_type(request, item.type),
            )
            for item in chosen
        ]
        with request.state.database.writing():
            request.state.database.execute_many(
                "UPDATE opened SET change=?, type=? WHERE client=? AND path=?",
                ((i.change, i.type, i.client, i.path) for i in moved),
            )
        for item, old in zip(moved, chosen, strict=True):
            _report_reopened(request, item, is_changed=item != old)


def _report_reopened(request: Request, item: Opened, *, is_changed: bool) -> None:
    number = item.revision or 1
    change = f"change {item.change}" if item.change else "default change"
    request.report(
        {
            "depotFile": item.path,
            "workRev": number,
            "action": item.action,
            "type": item.type,
            "change": item.change or "default",
        },
        6466 if is_changed else 6467,
        depotFile=item.path,
        workRev=f"#{number}",
        user="",
        type=item.type if request.has("t") else "",
        change=change if request.has("c") else "",
    )


COMMANDS = (
    Command(
        names=("revert",),
        run=revert,
        usage="revert [-a -k -n -w] [-c change] [-C client] file...",
        flags="aknw",
        valued="cC",
        uses_client=True,
    ),
    Command(
        names=("reopen",),
        run=reopen,
        usage="reopen [-c change] [-t type] file...",
        valued="ct",
        uses_client=True,
    ),
)
