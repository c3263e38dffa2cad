"""p4 integrate and merge; branch, branches.

A target that does not exist is branched, a deleted source deletes it, and everything
else is left to `p4 resolve`. With -v what is branched is not sent to the client.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from provisioner.lab.perforce.clients import Client, compiled_view
from provisioner.lab.perforce.commands.forms import day, form_date
from provisioner.lab.perforce.commands.labels import listed_specs, spec_command
from provisioner.lab.perforce.commands.opening import (
    check_writeable,
    insert_opened,
    target_change,
)
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.commands.sending import remove_file, send_file
from provisioner.lab.perforce.filespec import FileSet, parse_file_argument
from provisioner.lab.perforce.holdings import Opened, find_have, is_opened
from provisioner.lab.perforce.integrations import Resolve, last_taken, put_resolves
from provisioner.lab.perforce.messages import CommandError
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    Revision,
    find_head,
    known_path,
    revisions_at,
)
from provisioner.lab.perforce.specs import BRANCH
from provisioner.lab.perforce.specstore import all_specs, find_spec
from provisioner.lab.perforce.views import View, ViewLine, is_well_formed
from provisioner.lab.perforce.wire import Value


def integrate(request: Request) -> None:
    """Answer `p4 integrate` and `p4 merge`: by a branch spec, or from set to set."""
    client = request.get_client()
    check_writeable(client)
    change = target_change(request)
    if set(request.options.get("D", "")) - set("ist"):
        raise CommandError(7198, usage=_USAGE)
    limit = request.number("m", default=0)
    done = False
    for source, target in itertools.islice(pairs(request), limit or None):
        done = _integrate_one(request, client, source, target, change) or done
    request.settle()
    if not done:
        request.say(6516, argc=" ".join(request.args))


def pairs(request: Request) -> Iterator[tuple[Revision, str]]:
    """Yield each source revision with its target's depot path.

    Raises: CommandError.
    """
    if request.has("b"):
        yield from _branch_pairs(request)
        return
    if len(request.args) != 2:
        raise CommandError(7198, usage=f"{request.command} [options] from[rev] to")
    source, target = (parse_file_argument(request, text) for text in request.args)
    view = one_line_view(source, target)
    for revision in revisions_at(request.state.database, source):
        place = _as_in(source, revision.path)
        found = view.to_client(place) if place else None
        if found is not None and target.client is not None:
            found = target.client.view.to_depot(found)
        if found is not None:
            yield revision, found


def one_line_view(source: FileSet, target: FileSet) -> View:
    """Return the mapping from one file argument to another.

    Raises: CommandError if their wildcards differ.
    """
    line = ViewLine(flag="", left=source.pattern, right=target.pattern)
    if not is_well_formed(line):
        raise CommandError(4134, arg=source.pattern, arg2=target.pattern)
    return View([line])


def _as_in(files: FileSet, path: str) -> str | None:
    return files.client.view.to_client(path) if files.client is not None else path


def _branch_pairs(request: Request) -> Iterator[tuple[Revision, str]]:
    name = request.options["b"]
    spec = find_spec(request.state.database, kind="branch", name=name)
    if spec is None:
        raise CommandError(6178, type="Branch", name=name)
    view = compiled_view(tuple(spec.lines("View")))
    targets = [parse_file_argument(request, text) for text in request.args]
    is_reverse = request.has("r")
    translate = view.to_depot if is_reverse else view.to_client
    for line in view.lines:
        if line.flag == "-":
            continue
        source = parse_file_argument(request, line.right if is_reverse else line.left)
        for revision in revisions_at(request.state.database, source):
            path = translate(revision.path)
            if path and (not targets or any(t.has_depot_path(path) for t in targets)):
                yield revision, path


def _integrate_one(
    request: Request, client: Client, source: Revision, target: str, change: int
) -> bool:
    """Open one target; return False if there is nothing to integrate."""
    database = request.state.database
    target = known_path(database, target)
    place = client.view.to_client(target)
    head = find_head(database, path=target)
    exists = head is not None and not head.is_deleted
    taken = last_taken(database, path=target, other=source.path)
    if request.has("f"):
        taken = 0
    if source.revision <= taken or (source.is_deleted and not exists):
        return False
    if place is None:
        request.say(6511, argc=target)
        return True
    if not request.access().allows("open", target):
        request.say(6513, argc=target)
        return True
    if is_opened(database, client=client.name, path=target):
        request.say(6394, depotFile=target, action="integrate")
        return True
    if not exists:
        action, how, number = "branch", "branch from", 0
    else:
        have = find_have(database, client=client.name, path=target)
        number = have.revision if have else 0
        if have is None or head is None or number != head.revision:
            request.say(6404, toFile=target)
            return True
        action, how = (
            ("delete", "delete from") if source.is_deleted else ("integrate", "")
        )
    kind = source.type if head is None or action == "branch" else head.type
    opened = Opened(
        client.name, target, place, number, action, kind, request.user, change
    )
    base, base_revision = _base(request, source, target, taken)
    resolve = Resolve(
        *(client.name, target, source.path, taken, source.revision),
        *(base, base_revision, how),
    )
    _report(request, client, opened, resolve)
    if not request.has("n"):
        _open(request, client, opened, resolve, source)
    return True


def _base(
    request: Request, source: Revision, target: str, taken: int
) -> tuple[str, int]:
    """Return the common revision of source and target."""
    if taken:
        return source.path, taken
    given = last_taken(request.state.database, path=source.path, other=target)
    return (target, given) if given else (source.path, 1)


def _open(
    request: Request,
    client: Client,
    opened: Opened,
    resolve: Resolve,
    source: Revision,
) -> None:
    local = client.local_path(opened.client_path)
    is_virtual = opened.action == "branch" and request.has("v")
    if opened.action == "branch" and not is_virtual:
        send_file(request, client, source, local=local, confirm={})
    elif opened.action == "delete":
        remove_file(request, client, local=local, file_type=opened.type, confirm={})
    insert_opened(request, [opened])
    with request.state.database.writing():
        put_resolves(request.state.database, [resolve])
        if is_virtual:
            request.state.database.execute(
                "INSERT OR REPLACE INTO virtual VALUES (?,?)",
                *(client.name, opened.path),
            )


def _report(request: Request, client: Client, opened: Opened, resolve: Resolve) -> None:
    if request.has("q"):
        return
    number = opened.revision or 1
    action = "branch/sync" if opened.action == "branch" else opened.action
    record: dict[str, Value] = {
        "depotFile": opened.path,
        "clientFile": client.local_path(opened.client_path),
        "workRev": number,
        "action": opened.action,
        "fromFile": resolve.other,
        "startFromRev": resolve.start or "none",
        "endFromRev": resolve.end,
    }
    request.report(
        record,
        6568,
        depotFile=opened.path,
        workRev=f"#{number}",
        action=action,
        fromFile=resolve.other,
        fromRev=resolve.revisions,
        baseFile="",
        baseRev="",
    )


def branch(request: Request) -> None:
    """Answer `p4 branch -o`, `-i` and `-d`."""
    depots = [spec.name for spec in all_specs(request.state.database, kind="depot")]
    spec_command(
        request,
        BRANCH,
        defaults={
            "Owner": request.user,
            "Description": f"Created by {request.user}.\n",
            "Options": "unlocked",
            "View": [f"//{depot}/... //{depot}/..." for depot in depots],
        },
    )


def branches(request: Request) -> None:
    """Answer `p4 branches`. Source: p4 help branches."""
    for spec in listed_specs(request, kind="branch"):
        record: dict[str, Value] = {
            "branch": spec.name,
            "Update": spec.updated,
            "Access": spec.accessed,
            "Owner": spec.text("Owner"),
            "Options": spec.text("Options"),
            "Description": spec.text("Description"),
        }
        if request.is_tagged:
            request.record(record)
        else:
            text = spec.text("Description").rstrip("\n")
            date = form_date(spec.updated) if request.has("t") else day(spec.updated)
            request.info(f"Branch {spec.name} {date} '{text}'")


_USAGE = (
    "integrate [-c change] [-d|-D[i][s][t]] [-f -i -n -q -r -v] [-m max]"
    " [-b branch [to...] | from[rev] to]"
)

COMMANDS = (
    Command(
        names=("integrate", "integ", "merge"),
        run=integrate,
        usage=_USAGE,
        # Deleted files are taken as -d and -D ask for, and files without a common
        # ancestor as -i does, anyway. Source: p4 help integrate, and that of 2010.1.
        flags="dfinqrv3",
        valued="cbDm",
        absent="ehtRsFKSPOA",
        uses_client=True,
    ),
    Command(
        names=("branch",),
        most_arguments=1,
        run=branch,
        usage="branch -o | -i | -d name",
        flags="oidf",
        absent="SP",
    ),
    Command(
        names=("branches",),
        most_arguments=0,
        run=branches,
        usage="branches [-t] [-u user] [-e|-E filter] [-m max]",
        flags="t",
        valued="ueEm",
    ),
)
