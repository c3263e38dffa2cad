"""p4 describe."""

from __future__ import annotations

from provisioner.lab.perforce.commands.changes import (
    find_change,
    has_shelf,
    opened_in,
    submitted_revisions,
)
from provisioner.lab.perforce.commands.forms import (
    form_date,
)
from provisioner.lab.perforce.commands.jobs import job_line
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.textdiffs import diff_style, show_difference
from provisioner.lab.perforce.fixes import fixes_of, get_job
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    Revision,
    find_revision,
)
from provisioner.lab.perforce.specstore import StoredSpec
from provisioner.lab.perforce.wire import Value


def describe(request: Request) -> None:
    """Answer `p4 describe`, without differences for pending changes."""
    if not request.args:
        raise CommandError(7198, usage="describe [-d<flags> -s -S] change...")
    style = diff_style(request)
    for text in request.args:
        row = find_change(request, text)
        made: list[Revision] = []
        if request.has("S"):
            made = _shelved_revisions(request, row[0])
            _describe(request, row, [_file_record(each) for each in made])
        elif row[1] == "submitted":
            made = submitted_revisions(request, row[0])
            _describe(request, row, [_file_record(each) for each in made])
        else:
            _describe(request, row, _pending_files(request, row[0]))
        if made and not request.has("s"):
            _show_differences(request, made, style)


def _file_record(revision: Revision) -> dict[str, Value]:
    record: dict[str, Value] = {
        "depotFile": revision.path,
        "action": revision.action,
        "type": revision.type,
        "rev": revision.revision,
    }
    if not revision.is_deleted:
        record |= {"fileSize": revision.size, "digest": revision.digest}
    return record


def _shelved_revisions(request: Request, change: object) -> list[Revision]:
    """Return the files of a shelf as revisions, numbered as they were opened."""
    rows = request.state.database.rows(
        "SELECT path, revision, change, action, type, modified, modified, digest, size"
        " FROM shelved WHERE change=? ORDER BY path",
        change,
    )
    return [Revision._make(row) for row in rows]


def _show_differences(request: Request, made: list[Revision], style: str) -> None:
    """Show each revision's differences, without deleted and (unless -a) new files.

    That a tagged client gets the same lines and texts is inferred.
    """
    if not request.is_tagged:
        request.say(7273)
    for new in made:
        is_shelved = request.has("S")
        old = find_revision(
            request.state.database,
            path=new.path,
            number=new.revision if is_shelved else new.revision - 1,
        )
        is_added = old is None or old.is_deleted
        if new.is_deleted or (is_added and not request.has("a")):
            continue
        if is_added:
            old = None
        request.say(
            6362,
            depotFile=new.path,
            depotRev=f"#{new.revision}",
            type=old.type if old else new.type,
            type2="" if old is None or new.type == old.type else new.type,
        )
        if old is None or new.digest != old.digest:
            show_difference(request, old, new, style=style)


def _pending_files(request: Request, change: object) -> list[dict[str, Value]]:
    return [
        {
            "depotFile": item.path,
            "action": item.action,
            "type": item.type,
            "rev": item.revision or 1,
        }
        for item in opened_in(request, int(str(change)))
    ]


def _describe(
    request: Request, row: tuple[object, ...], files: list[dict[str, Value]]
) -> None:
    change, status, user, client, when, kind, description, path = (
        str(value) for value in row
    )
    if not request.is_tagged:
        request.say(
            6360 if status == "pending" else 6359,
            change=f"Change {change}",
            user=user,
            client=client,
            date=form_date(int(when)),
            description="\n\n\t"
            + description.rstrip("\n").replace("\n", "\n\t")
            + "\n",
        )
        _show_jobs(request, int(change))
        request.say(7577 if request.has("S") else 7272)
        request.info("")
        for file in files:
            request.say(
                6361,
                depotFile=file["depotFile"],
                depotRev=f"#{file['rev']!s}",
                action=file["action"],
            )
        return
    record: dict[str, Value] = {
        "change": change,
        "user": user,
        "client": client,
        "time": when,
        "desc": description,
        "status": status,
        "changeType": kind,
    }
    if path:
        record["path"] = path
    if has_shelf(request, int(change)):
        record["shelved"] = ""
    for index, (job, status) in enumerate(_jobs(request, int(change))):
        record |= {f"job{index}": job.name, f"jobstat{index}": status}
    for index, file in enumerate(files):
        record |= {f"{key}{index}": value for key, value in file.items()}
    request.record(record)


def _jobs(request: Request, change: int) -> list[tuple[StoredSpec, str]]:
    """Return the jobs that a change fixes, with the status of each fix."""
    database = request.state.database
    return [
        (get_job(database, name=fix.job), fix.status)
        for fix in fixes_of(database, change=change)
    ]


def _show_jobs(request: Request, change: int) -> None:
    found = _jobs(request, change)
    if found:
        request.say(7271)
    for job, _ in found:
        request.say(6413, **job_line(job, is_long=True))


COMMANDS = (
    Command(
        names=("describe",),
        run=describe,
        usage="describe [-d<flags> -a -s -S -f] change...",
        flags="asSf",
        valued="d",
        absent="OIm",
    ),
)
