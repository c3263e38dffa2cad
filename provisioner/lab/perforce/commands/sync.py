# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""p4 sync and flush: plan first, then stream, then one mark, then one write."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterable

from provisioner.lab.perforce import filetypes, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.bulkplan import BulkPlan, bulk_plan
from provisioner.lab.perforce.commands.parallel import send_parallel, wanted_threads
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import (
    remove_step,
    send_file,
    send_piece,
    without_keywords,
)
from provisioner.lab.perforce.commands.syncplan import Plan, Step
from provisioner.lab.perforce.commands.syncreports import (
    Progress,
    Reports,
    noted,
    reports_of,
)
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.holdings import find_have, opened_by
from provisioner.lab.perforce.integrations import (
    Resolve,
    put_resolves,
    resolves_of,
)
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import find_revision
from provisioner.lab.perforce.wire import Value


def sync(request: Request) -> None:
    """Answer `p4 sync`."""
    _sync(request, keeps_files=request.has("k"))


def flush(request: Request) -> None:
    """Answer `p4 flush`: a sync that transfers no files."""
    _sync(request, keeps_files=True)


def _sync(request: Request, *, keeps_files: bool) -> None:
    # Of these only -f and -k go together. Source: p4 help sync.
    if len({"s", "p"} & request.options.keys()) == 2 or (
        {"s", "p"} & request.options.keys() and {"f", "k"} & request.options.keys()
    ):
        raise CommandError(7198, usage=_USAGE)
    client = request.get_client()
    configurables = request.state.configurables
    prefix = configurables.text("zerosyncPrefix")
    keeps_files = keeps_files or bool(prefix and client.name.startswith(prefix))
    with contextlib.ExitStack() as locks:
        if configurables.number("server.locks.sync"):
            locks.enter_context(request.locks.reading({f"clients/{client.name}": 0}))
        peeks = configurables.number("db.peeking") >= 2
        sets = file_sets(request, default="")
        if request.has("E"):
            _check_submitted(request, sets)
        if request.has("L") and any(s.in_client_syntax for s in sets):
            raise CommandError(7198, usage="sync -L //depot/path#revision...")
        if request.has("r"):
            _check_nothing_moves(request, client)
        for wanted in sets:
            _sync_set(request, client, wanted, keeps_files=keeps_files, peeks=peeks)


def _sync_set(
    request: Request,
    client: Client,
    wanted: FileSet,
    *,
    keeps_files: bool,
    peeks: bool,
) -> None:
    """Sync one file argument; with `peeks` it is planned without locks."""
    if wanted.upper.kind == "shelf":
        raise NotInLab("sync @=change")
    read = {} if peeks else {"db.rev": 0, client.have_table: 0}
    moves_nothing = keeps_files or request.has("n") or request.has("N")
    with request.locks.reading(read), request.state.database.reading():
        plan = _planned(request, client, wanted, moves_nothing=moves_nothing)
    request.check_limits(scanned=plan.scanned, results=plan.count)
    if request.has("N"):
        _estimate(request, plan)
        return
    for opened in plan.opened:
        request.say(6491, depotFile=opened.path, workRev=f"#{opened.revision}")
    for had in plan.bypassed:
        # That there is a warning is documented, its text is not.
        text = f"{had.path}#{had.revision} - is synced and not being changed"
        request.say_freely(6532, text)
    for item in plan.merges:
        request.say(6495, depotFile=item.path, revRange=item.revisions)
    if plan.merges and not request.has("n"):
        _schedule(request, client, plan.merges)
    if not plan.count:
        if not (plan.opened or plan.bypassed):
            _say_why_nothing(request, plan, wanted)
        return
    if isinstance(plan, BulkPlan):
        _follow(request, client, plan, moves_nothing=moves_nothing)
        return
    steps = plan.steps
    if moves_nothing:
        reports_of(request, client, steps).tell_all(map(noted, steps))
    else:
        if _looks_first(request, client):
            steps = _unmodified(request, client, steps)
        reports = reports_of(request, client, steps)
        done = _transfer(
            *(request, client, steps, reports), count=len(steps), size=reports.size
        )
        steps = [steps[index] for index in done]
    if not (request.has("n") or request.has("p")):
        _write_have(request, client, steps)


def _estimate(request: Request, plan: Plan | BulkPlan) -> None:
    """Only report how much a sync would do (-N). Source: p4 help sync."""
    steps = plan.steps() if isinstance(plan, BulkPlan) else map(noted, plan.steps)
    files, sizes = Counter[str](), Counter[str]()
    for action, _, _, _, size in steps:
        kind = "Updated" if action in ("refreshed", "replaced") else action.capitalize()
        files[kind] += 1
        sizes[kind] += size or 0
    estimates: dict[str, Value] = {
        **{f"files{kind}": files[kind] for kind in ("Added", "Updated", "Deleted")},
        **{f"bytes{kind}": sizes[kind] for kind in ("Added", "Updated")},
    }
    request.report(estimates, 7800, **estimates)


def _check_nothing_moves(request: Request, client: Client) -> None:
    """Refuse -r if it would matter: for opened files that were moved in the view.

    Raises: NotInLab.
    """
    for item in opened_by(request.state.database, client=client.name).values():
        if client.view.to_depot(item.client_path) not in (None, item.path):
            raise NotInLab("sync -r of files that are open at another place")


def _planned(
    request: Request, client: Client, wanted: FileSet, *, moves_nothing: bool
) -> Plan | BulkPlan:
    bulk = None
    if moves_nothing or not _looks_first(request, client):
        bulk = bulk_plan(request, client, wanted, sends_files=not moves_nothing)
    return bulk or Plan(request, client, wanted)


def _looks_first(request: Request, client: Client) -> bool:
    """Return whether files are compared before they are overwritten.

    `update` is `sync -s`.

    Source: p4 help sync.
    """
    is_safe = request.has("s") or request.command == "update"
    return is_safe or (client.syncs_safely and not request.has("f"))


def _follow(
    request: Request, client: Client, plan: BulkPlan, *, moves_nothing: bool
) -> None:
    """Report a plan, carry it out on the client and, unless previewing, record it."""
    size, change = plan.totals()
    reports = Reports(request, client, size=size, count=plan.count, change=change)
    if moves_nothing:
        reports.tell_all(plan.steps())
    else:
        done = _transfer(
            *(request, client, plan.files(), reports), count=plan.count, size=size
        )
        plan.forget(set(range(plan.count)).difference(done))
    if request.has("n"):
        return
    written = {client.have_table: plan.count}
    with request.locks.writing(written), request.state.database.writing():
        plan.write()


def _check_submitted(request: Request, sets: list[FileSet]) -> None:
    """Refuse revisions at a change that was not submitted (-E).

    Raises: CommandError.
    """
    for point in (point for files in sets for point in (files.lower, files.upper)):
        if point is None or point.kind != "change":
            continue
        row = request.state.database.execute(
            "SELECT 1 FROM changes WHERE change=? AND status='submitted'", point.number
        ).fetchone()
        if row is None:
            raise CommandError(6170, change=f"Change {point.number}")


def _schedule(request: Request, client: Client, merges: list[Resolve]) -> None:
    """Record the newer revisions as had; the client's files stay until the resolve."""
    database = request.state.database
    with database.writing():
        for item in merges:
            for other in resolves_of(database, client=client.name, path=item.path):
                # Not resolved yet: the common base is the one of the first sync.
                if other.other == item.path and not other.how:
                    item = item._replace(
                        start=other.start, base_revision=other.base_revision
                    )
            put_resolves(database, [item])
            for table in ("have", "opened"):
                database.execute(
                    f"UPDATE {table} SET revision=? WHERE client=? AND path=?",
                    *(item.end, client.name, item.path),
                )


def _say_why_nothing(request: Request, plan: Plan | BulkPlan, wanted: FileSet) -> None:
    if plan.found or plan.has_any:
        request.say(6532, argc=wanted.typed)
    elif plan.outside_view:
        request.say(6511, argc=wanted.typed)
    else:
        request.say(wanted.nothing_found, argc=wanted.typed)


def _write_have(request: Request, client: Client, steps: Iterable[Step]) -> None:
    """Record steps as done, all or none."""
    now = int(time.time())
    steps = list(steps)
    # A file that only moved within the client is deleted and added: keep the order.
    written = {client.have_table: len(steps)}
    with request.locks.writing(written), request.state.database.writing():
        request.state.database.execute_many(
            "DELETE FROM have WHERE client=? AND path=?",
            ((client.name, step.path) for step in steps if step.revision is None),
        )
        request.state.database.execute_many(
            "INSERT INTO have VALUES (?,?,?,?,?) ON CONFLICT DO UPDATE SET"
            " client_path=excluded.client_path, revision=excluded.revision,"
            " synced=excluded.synced",
            (
                (client.name, step.path, step.client_path, step.number, now)
                for step in steps
                if step.revision is not None
            ),
        )


def _transfer(
    request: Request,
    client: Client,
    steps: Iterable[Step],
    reports: Reports,
    *,
    count: int,
    size: int,
) -> list[int]:
    """Carry out steps on the client; return the numbers of those it confirms."""
    threads = wanted_threads(request, count=count, size=size)
    if threads is not None:
        return send_parallel(request, client, steps, reports, threads)
    progress = Progress(request, total=count)
    clobber = request.has("f")
    for index, step in enumerate(steps):
        if request.has("K") and step.revision is not None:
            plain = without_keywords(request.state.content, step.revision)
            step = step._replace(revision=plain)
        told, revision = noted(step), step.revision
        is_sent = (
            revision is not None
            and reports.is_underway
            and send_piece(
                request,
                client,
                told,
                revision,
                confirm=("step", index),
                clobber=clobber,
                is_told=not reports.is_quiet,
            )
        )
        if not is_sent:
            reports.tell(told)
            _do(request, client, step, index)
        progress.count(index + 1)
    done = request.confirmed("step")
    progress.finish()
    # A client that lies confirms a step twice, or one that it was not given.
    return sorted({index for index in done if index < count})


def _do(request: Request, client: Client, step: Step, index: int) -> None:
    if step.revision is None:
        remove_step(request, client, step, index)
        return
    send_file(
        request,
        client,
        step.revision,
        local=client.local_path(step.client_path),
        confirm={"step": index},
        clobber=request.has("f"),
    )


def _unmodified(request: Request, client: Client, steps: list[Step]) -> list[Step]:
    """Return the steps that overwrite no local change (sync -s)."""
    database = request.state.database
    for index, step in enumerate(steps):
        if step.action == "added":
            known = step.revision
        else:
            have = find_have(database, client=client.name, path=step.path)
            number = have.revision if have else 0
            known = find_revision(database, path=step.path, number=number)
        if known is None:
            continue
        request.send(
            "client-CheckFile",
            {
                "path": client.local_path(step.client_path),
                "type": filetypes.wire_code(known.type, line_end=client.line_end),
                "digest": known.digest,
                "confirm": replies.COMPARED,
                "step": index,
            },
        )
    modified = set()
    for answer in request.answers():
        if answer.text("status") == "exists":
            modified.add(answer.integer("step"))
    kept = []
    for index, step in enumerate(steps):
        if index not in modified:
            kept.append(step)
            continue
        request.say(
            6748,
            depotFile=step.path,
            depotRev=f"#{step.number}",
            localPath=client.local_path(step.client_path),
        )
    return kept


_USAGE = "sync [-E -K -L -N -n -q -r] [-f -k | -p | -s] [-m max] [file[revision]...]"

COMMANDS = (
    Command(
        names=("sync", "update"),
        run=sync,
        usage=_USAGE,
        flags="EfKkLNnpqrs",
        valued="m",
        long=("parallel",),
        uses_client=True,
    ),
    Command(
        names=("flush",),
        run=flush,
        usage="flush [-E -f -L -n -q] [-m max] [file[revision]...]",
        flags="EfKkLNnqr",
        valued="m",
        uses_client=True,
    ),
)
