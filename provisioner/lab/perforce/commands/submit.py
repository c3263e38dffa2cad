"""p4 submit: which files are submitted, and which are left out."""

from __future__ import annotations

from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.changeforms import (
    check_owner,
    form_files,
    form_jobs,
    insert_pending,
)
from provisioner.lab.perforce.commands.changes import opened_in
from provisioner.lab.perforce.commands.committing import (
    OutOfDate,
    commit,
    make_read_only,
    outdated,
    report,
)
from provisioner.lab.perforce.commands.forms import read_form
from provisioner.lab.perforce.commands.intake import Sent, take_content
from provisioner.lab.perforce.commands.opening import check_writeable
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.shelvedsubmit import submit_shelf
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.fixes import change_fixes, check_status
from provisioner.lab.perforce.holdings import Opened, opened_by
from provisioner.lab.perforce.integrations import (
    resolves_of,
    virtual_paths,
)
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import find_head, find_revision
from provisioner.lab.perforce.specs import CHANGE
from provisioner.lab.perforce.wire import Value

_OPTIONS = ("submitunchanged", "revertunchanged", "leaveunchanged")


def submit(request: Request) -> None:
    """Answer `p4 submit -d`, `-c`, `-i` and `-e`."""
    if request.has("s"):
        check_status(request.options["s"])
    if request.has("e"):
        submit_shelf(request)
        return
    client = request.get_client()
    check_writeable(client)
    number, files = _prepare(request, client)
    with request.phase("dm-SubmitChange"):
        sent = _checked(request, client, number, files)
    files, unchanged = _split_unchanged(request, client, files, sent)
    if not files:
        _settle_unchanged(request, client, unchanged)
        raise CommandError(7214)
    try:
        with request.phase("dm-CommitSubmit"):
            final, revisions = commit(request, client, number, files, sent)
    except OutOfDate as conflict:
        _refuse_outdated(request, number, conflict.args[0])
        raise
    _settle_unchanged(request, client, unchanged)
    lazy = {path for path, each in sent.items() if each.is_lazy}
    report(request, client, number, final, revisions, files, lazy=lazy)


def _checked(
    request: Request, client: Client, number: int, files: list[Opened]
) -> dict[str, Sent]:
    """Check what is to be submitted, and take its content from the client.

    Raises: CommandError.
    """
    access = request.access()
    if not all(access.allows("write", item.path) for item in files):
        request.say(6513, argc="")
        raise CommandError(7210, change=number)
    _refuse_unresolved(request, client, number, files)
    _refuse_outdated(request, number, outdated(request, files))
    if request.is_tagged:
        request.record({"change": number, "locked": len(files)})
    else:
        request.say(7296, change=number)
        request.say(7293, unlockedCount=len(files))
    lazy = _lazy_copies(request, client, files)
    at_client = [item for item in files if item.path not in lazy]
    return take_content(request, client, number, at_client) | lazy


def _lazy_copies(
    request: Request, client: Client, files: list[Opened]
) -> dict[str, Sent]:
    """Return the content of branches that are not at the client: their source's.

    Source: -v in p4 help integrate; "lazy copy" in the glossary of the guides.
    """
    database = request.state.database
    virtual = virtual_paths(database, client=client.name)
    chosen = virtual & {item.path for item in files}
    found = {}
    for take in resolves_of(database, client=client.name) if chosen else ():
        source = find_revision(database, path=take.other, number=take.end)
        if take.path in chosen and source is not None:
            found[take.path] = Sent(
                digest=source.digest,
                size=source.size,
                modified=source.modified,
                is_lazy=True,
            )
    return found


# --- which files, in which change


def _prepare(request: Request, client: Client) -> tuple[int, list[Opened]]:
    """Return the numbered change to submit and its files.

    Raises: CommandError.
    """
    jobs: list[str] = []
    if request.has("c"):
        return _numbered(request, request.options["c"])
    if request.has("i"):
        fields = read_form(request, CHANGE)
        description = str(fields.get("Description", ""))
        if str(fields.get("Change", "new")) != "new":
            return _numbered(
                request,
                str(fields["Change"]),
                description=description,
                jobs=form_jobs(fields),
            )
        jobs = form_jobs(fields)
        wanted = set(form_files(fields))
        files = [f for f in _default_files(request, client) if f.path in wanted]
    elif request.has("d"):
        description = request.options["d"]
        files = _default_files(request, client)
        if request.args:
            sets = file_sets(request)
            files = [
                f
                for f in files
                if any(s.has_file(path=f.path, client_path=f.client_path) for s in sets)
            ]
    else:
        raise CommandError(7198, usage=_USAGE)
    if not files:
        raise CommandError(7218)
    return _number(request, description, files, jobs), files


def _default_files(request: Request, client: Client) -> list[Opened]:
    opened = opened_by(request.state.database, client=client.name)
    return [item for item in opened.values() if item.change == 0]


def _number(
    request: Request, description: str, files: list[Opened], jobs: list[str]
) -> int:
    database = request.state.database
    with database.writing():
        number = database.next_change()
        insert_pending(request, number, description=description)
        database.execute_many(
            "UPDATE opened SET change=? WHERE client=? AND path=?",
            ((number, item.client, item.path) for item in files),
        )
        change_fixes(request, number, jobs)
    return number


def _numbered(
    request: Request,
    text: str,
    *,
    description: str = "",
    jobs: list[str] | None = None,
) -> tuple[int, list[Opened]]:
    row = None
    database = request.state.database
    if text.isdecimal():
        row = database.execute(
            "SELECT status, client, user FROM changes WHERE change=?", int(text)
        ).fetchone()
    if row is None:
        raise CommandError(6170, change=f"Change {text}")
    status, client, user = row
    if status != "pending":
        raise CommandError(6208, change=text)
    check_owner(request, f"Change {text}", user=str(user), client=str(client))
    number = int(text)
    if database.execute("SELECT 1 FROM shelved WHERE change=?", number).fetchone():
        raise CommandError(7578, change=number)
    if description:
        with database.writing():
            database.execute(
                "UPDATE changes SET description=? WHERE change=?", description, number
            )
    if jobs is not None:
        with database.writing():
            change_fixes(request, number, jobs)
    files = opened_in(request, number)
    if not files:
        raise CommandError(7214)
    return number, files


def _refuse_unresolved(
    request: Request, client: Client, number: int, files: list[Opened]
) -> None:
    """Raise if files are unresolved, or half of a move is missing."""
    database = request.state.database
    chosen = {item.path for item in files}
    takes = [r for r in resolves_of(database, client=client.name) if r.path in chosen]
    pending = [take for take in takes if not take.how]
    for take in pending:
        request.say(6495, depotFile=take.path, revRange=take.revisions)
    if pending:
        raise CommandError(7210, because=7212, change=number)
    origins = {take.other: take.path for take in takes if take.how == "moved from"}
    for item in files:
        if item.action == "move/delete" and item.path not in origins:
            request.say(6635, depotFile=item.path, direction="to", movedFile="")
            raise CommandError(7210, change=number)
    for origin, path in origins.items():
        if origin not in chosen:
            request.say(6635, depotFile=path, direction="from", movedFile=origin)
            raise CommandError(7210, change=number)


def _refuse_outdated(
    request: Request, number: int, problems: list[dict[str, Value]]
) -> None:
    """Raise if there are problems; the files stay in their numbered change."""
    for problem in problems:
        variables = {name: value for name, value in problem.items() if name != "id"}
        request.say(int(problem["id"]), **variables)
    if any(problem["id"] == 6422 for problem in problems):
        request.say(7211)
    if problems:
        raise CommandError(7210, change=number)


# --- unchanged files


def _split_unchanged(
    request: Request, client: Client, files: list[Opened], sent: dict[str, Sent]
) -> tuple[list[Opened], list[Opened]]:
    """Return the files to submit, and the unchanged ones that are left out."""
    if _policy(request, client) == "submitunchanged":
        return files, []
    kept, unchanged = list[Opened](), list[Opened]()
    for item in files:
        head = find_head(request.state.database, path=item.path)
        is_same = (
            item.action == "edit"
            and head is not None
            and head.digest == sent[item.path].digest
            and head.type == item.type
        )
        (unchanged if is_same else kept).append(item)
    return kept, unchanged


def _policy(request: Request, client: Client) -> str:
    """Return what to do with unchanged files.

    Raises: CommandError.
    """
    option = request.options.get("f", client.submit_options)
    policy, _, reopens = option.partition("+")
    if policy not in _OPTIONS or reopens not in ("", "reopen"):
        raise CommandError(7198, usage=_USAGE)
    return policy


def _settle_unchanged(
    request: Request, client: Client, unchanged: list[Opened]
) -> None:
    """Revert unchanged files, or leave them in the default change."""
    if not unchanged:
        return
    database = request.state.database
    if _policy(request, client) == "leaveunchanged":
        sql = "UPDATE opened SET change=0 WHERE client=? AND path=?"
    else:
        sql = "DELETE FROM opened WHERE client=? AND path=?"
        for item in unchanged:
            make_read_only(request, client, item)
    with database.writing():
        database.execute_many(sql, ((i.client, i.path) for i in unchanged))


_USAGE = (
    "submit [-r -K -f option -s status] -d description [file...] | -c change"
    " | -e shelvedChange | -i"
)

COMMANDS = (
    Command(
        names=("submit",),
        run=submit,
        usage=_USAGE,
        flags="irK",
        valued="dcefs",
        absent="Sb",
        long=("parallel",),
        uses_client=True,
    ),
)
