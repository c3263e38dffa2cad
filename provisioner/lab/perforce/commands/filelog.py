"""p4 filelog."""

from __future__ import annotations

from provisioner.lab.perforce.commands.forms import day, form_date
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import file_sets
from provisioner.lab.perforce.integrations import integrations_of
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    Revision,
    revisions_in,
)
from provisioner.lab.perforce.wire import Value


def filelog(request: Request) -> None:
    """Answer `p4 filelog`."""
    limit = request.number("m", default=0)
    for wanted in file_sets(request):
        by_path: dict[str, list[Revision]] = {}
        for revision in revisions_in(request.state.database, wanted):
            by_path.setdefault(revision.path, []).append(revision)
        for path, revisions in by_path.items():
            _filelog_one(request, path, revisions[:limit] if limit else revisions)
        if not by_path:
            request.say(wanted.nothing_found, argc=wanted.typed)


def _filelog_one(request: Request, path: str, revisions: list[Revision]) -> None:
    record: dict[str, Value] = {"depotFile": path}
    lines: list[tuple[int, str]] = []
    for index, revision in enumerate(revisions):
        user, client, description = request.state.database.execute(
            "SELECT user, client, description FROM changes WHERE change=?",
            revision.change,
        ).fetchone()
        record |= {
            f"rev{index}": revision.revision,
            f"change{index}": revision.change,
            f"action{index}": revision.action,
            f"type{index}": revision.type,
            f"time{index}": revision.time,
            f"user{index}": user,
            f"client{index}": client,
            f"desc{index}": description if request.has("l") else description[:31],
        }
        if not revision.is_deleted:
            record[f"fileSize{index}"] = revision.size
            record[f"digest{index}"] = revision.digest
        taken = integrations_of(
            request.state.database, path=path, revision=revision.revision
        )
        for number, (how, other, start, end) in enumerate(taken):
            record |= {
                f"how{index},{number}": how,
                f"file{index},{number}": other,
                f"srev{index},{number}": f"#{start or 'none'}",
                f"erev{index},{number}": f"#{end}",
            }
        by = f"by {user}@{client} ({revision.type})"
        lines.append((1, _history_line(request, revision, by, description)))
        for how, other, start, end in taken:
            span = f"#{end}" if end == start + 1 else f"#{start + 1},#{end}"
            lines.append((2, f"{how} {other}{span}"))
    if request.is_tagged:
        request.record(record)
        return
    request.info(path)
    for level, line in lines:
        request.send("client-OutputInfo", {"data": line, "level": level})


def _history_line(
    request: Request, revision: Revision, by: str, description: str
) -> str:
    when = form_date(revision.time) if request.has("t") else day(revision.time)
    line = (
        f"#{revision.revision} change {revision.change} {revision.action}"
        f" on {when} {by}"
    )
    if not request.has("l"):
        short = description[:31].replace("\n", " ").strip()
        return f"{line} '{short}'"
    text = description.rstrip("\n").replace("\n", "\n\t")
    return f"{line}\n\n\t{text}\n"


COMMANDS = (
    Command(
        names=("filelog",),
        run=filelog,
        usage="filelog [-l -t] [-m max] file...",
        flags="lt",
        valued="m",
        absent="chiLpsn1",
    ),
)
