# ruff: noqa: S608 - statements are composed of our own constants; values are bound
"""p4 sync and flush: plan first, then stream, then one mark, then one write."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable

from provisioner.lab.perforce import filetypes, hotmessages, replies
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import remove_file, send_file
from provisioner.lab.perforce.commands.syncplan import Plan, Step
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.holdings import (
    find_have,
)
from provisioner.lab.perforce.integrations import (
    Resolve,
    put_resolves,
    resolves_of,
)
from provisioner.lab.perforce.messages import CommandError, NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import find_revision
from provisioner.lab.perforce.wire import Value

# Tagged action -> message of the untagged line.
_LINES = {
    "added": 6484,
    "updated": 6489,
    "refreshed": 6490,
    "replaced": 6486,
    "deleted": 6485,
}


def sync(request: Request) -> None:
    """Answer `p4 sync`."""
    _sync(request, keeps_files=request.has("k"))


def flush(request: Request) -> None:
    """Answer `p4 flush`: a sync that moves no files."""
    _sync(request, keeps_files=True)


def _sync(request: Request, *, keeps_files: bool) -> None:
    client = request.get_client()
    configurables = request.state.configurables
    with contextlib.ExitStack() as locks:
        if configurables.number("server.locks.sync"):
            locks.enter_context(request.locks.reading({f"clients/{client.name}": 0}))
        peeks = configurables.number("db.peeking") >= 2
        sets = file_sets(request, default="")
        if request.has("E"):
            _check_submitted(request, sets)
        if request.has("L") and any(s.in_client_syntax for s in sets):
            raise CommandError(7198, usage="sync -L //depot/path#revision...")
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
    """Bring one file argument about; who `peeks` plans without locks."""
    limit = request.number("m", default=0)
    if wanted.upper.kind == "shelf":
        raise NotInLab("sync @=change")
    read = {} if peeks else {"db.rev": 0, client.have_table: 0}
    with request.locks.reading(read), request.state.database.reading():
        plan = Plan(
            request,
            client,
            wanted,
            moves_no_content=keeps_files or request.has("n"),
        )
    _check_limits(request, plan, limit=limit)
    steps = plan.steps[:limit] if limit else plan.steps
    for opened in plan.opened:
        request.say(6491, depotFile=opened.path, workRev=f"#{opened.revision}")
    for item in plan.merges:
        request.say(6495, depotFile=item.path, revRange=item.revisions)
    if plan.merges and not request.has("n"):
        _schedule(request, client, plan.merges)
    if not steps:
        if not plan.opened:
            _say_why_nothing(request, plan, wanted)
        return
    if request.has("n"):
        _announce(request, client, steps)
    elif keeps_files:
        _announce(request, client, steps)
        _write_have(request, client, steps)
    else:
        _transfer(request, client, steps)


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


def _check_limits(request: Request, plan: Plan, *, limit: int) -> None:
    """Refuse what goes beyond the limits of the user's groups.

    Raises: CommandError.
    """
    scanned = request.state.limit(request.user, "MaxScanRows")
    if scanned is not None and plan.scanned > scanned:
        raise CommandError(4157, maxScanRows=scanned)
    results = request.state.limit(request.user, "MaxResults")
    count = min(limit, len(plan.steps)) if limit else len(plan.steps)
    if results is not None and count > results:
        raise CommandError(4128, maxResults=results)


def _schedule(request: Request, client: Client, merges: list[Resolve]) -> None:
    """Let the client have the newer revisions; its files stay until the resolve."""
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


def _say_why_nothing(request: Request, plan: Plan, wanted: FileSet) -> None:
    if plan.found or plan.has_any:
        request.say(6532, argc=wanted.typed)
    elif plan.outside_view:
        request.say(6511, argc=wanted.typed)
    else:
        request.say(wanted.nothing_found, argc=wanted.typed)


class Reports:
    """Tells the client of steps, the first time with what is to be said of all."""

    def __init__(self, request: Request, client: Client, steps: list[Step]) -> None:
        self._request = request
        self._client = client
        self._totals = _totals(steps)
        self.is_quiet = request.has("q")
        # Many records are sent without the help that the log needs.
        self._is_fast = request.is_tagged and not request.connection.is_logged
        self._is_first = True
        if self.is_quiet and request.is_tagged:
            request.record(self._totals)

    def tell(self, step: Step) -> None:
        """Tell of one step, unless nothing is to be said."""
        if self.is_quiet:
            return
        action, path, place, number, revision = step
        local = self._client.local_path(place)
        if self._is_fast and revision is not None and not self._is_first:
            self._request.connection.send_raw(
                hotmessages.synced(path, local, number, action, revision.size)
            )
            return
        record: dict[str, Value] = {
            "depotFile": path,
            "clientFile": local,
            "rev": number,
            "action": action,
            **({} if revision is None else {"fileSize": revision.size}),
            **(self._totals if self._is_first else {}),
        }
        self._is_first = False
        self._request.report(
            record,
            _LINES[action],
            depotFile=path,
            depotRev=f"#{number}",
            haveRev=f"#{number}",
            localPath=local,
        )


def _totals(steps: list[Step]) -> dict[str, Value]:
    """Return what the first record says about all of them."""
    revisions = [step.revision for step in steps if step.revision is not None]
    return {
        "totalFileSize": sum(revision.size for revision in revisions),
        "totalFileCount": len(steps),
        "change": max((revision.change for revision in revisions), default=0),
    }


def _announce(request: Request, client: Client, steps: list[Step]) -> None:
    """Report steps without doing anything on the client."""
    reports = Reports(request, client, steps)
    if not reports.is_quiet:
        for step in steps:
            reports.tell(step)


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


def _transfer(request: Request, client: Client, steps: list[Step]) -> None:
    """Do steps on the client and record the ones it confirms."""
    if request.has("s") or (client.syncs_safely and not request.has("f")):
        steps = _unmodified(request, client, steps)
    progress = Progress(request, total=len(steps))
    reports = Reports(request, client, steps)
    for index, step in enumerate(steps):
        reports.tell(step)
        if step.revision is None:
            _delete_file(request, client, step, index)
        else:
            send_file(
                request,
                client,
                step.revision,
                local=client.local_path(step.client_path),
                confirm={"step": index},
                clobber=request.has("f"),
            )
        progress.count(index + 1)
    done = [
        steps[answer.integer("step")]
        for answer in request.answers()
        if answer.func == replies.DONE
    ]
    progress.finish()
    if not request.has("p"):
        _write_have(request, client, done)


class Progress:
    """Tells a client that asked for it how far a quiet sync has come."""

    def __init__(self, request: Request, *, total: int) -> None:
        self._request = request
        self._total = total
        self._is_wanted = "progress" in request.message and request.has("q")
        self._told_at = time.monotonic()
        if self._is_wanted:
            self._tell(type=3, desc="Syncing files", units=2, total=total)

    def count(self, done: int) -> None:
        """Tell how many files are done, a few times a second and for the last."""
        now = time.monotonic()
        if self._is_wanted and (done == self._total or now - self._told_at > 0.3):
            self._told_at = now
            self._tell(update=done)

    def finish(self) -> None:
        if self._is_wanted:
            self._tell(done=0)

    def _tell(self, **variables: Value) -> None:
        self._request.send("client-Progress", {"handle": "progress", **variables})


def _delete_file(request: Request, client: Client, step: Step, index: int) -> None:
    previous = find_revision(request.state.database, path=step.path, number=step.number)
    kind = previous.type if previous else "binary"
    remove_file(
        request,
        client,
        local=client.local_path(step.client_path),
        file_type=kind,
        confirm={"step": index},
        clobber=request.has("f"),
    )


def _unmodified(request: Request, client: Client, steps: list[Step]) -> list[Step]:
    """Return the steps that overwrite nothing a person changed (sync -s)."""
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


COMMANDS = (
    Command(
        names=("sync", "update"),
        run=sync,
        usage="sync [-E -f -k -L -n -p -q -s] [-m max] [file[revision]...]",
        flags="EfkLnpqs",
        valued="m",
        absent="rN",
        long=("parallel",),
        uses_client=True,
    ),
    Command(
        names=("flush",),
        run=flush,
        usage="flush [-E -f -L -n -q] [-m max] [file[revision]...]",
        flags="EfLnqk",
        valued="m",
        uses_client=True,
    ),
)
