"""Reports on files: files, have, where, fstat, print, dirs, filelog."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from provisioner.lab.perforce import filetypes, hotmessages, paths
from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.forms import day, form_date
from provisioner.lab.perforce.commands.locking import lock_holders
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.filters import parse_filter
from provisioner.lab.perforce.holdings import (
    Have,
    Opened,
    count_have,
    have_in,
    opened_by,
)
from provisioner.lab.perforce.integrations import integrations_of
from provisioner.lab.perforce.messages import CommandError, NotInLab
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
        for revision in _revisions(request, wanted):
            if request.has("e") and revision.is_deleted:
                continue
            request.report(
                {
                    "depotFile": revision.path,
                    "rev": revision.revision,
                    "change": revision.change,
                    "action": revision.action,
                    "type": revision.type,
                    "time": revision.time,
                },
                6379,
                depotFile=revision.path,
                depotRev=f"#{revision.revision}",
                action=revision.action,
                change=f"change {revision.change}",
                type=revision.type,
            )
            found += 1
            if found == limit:
                break
        if not found:
            request.say(wanted.nothing_found, argc=wanted.typed)


def _revisions(request: Request, wanted: FileSet) -> list[Revision]:
    """Return the revisions of a set.

    Raises: CommandError where they are more than the user may ask for.
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
        return [("", pattern, place) for place in client.view.all_to_client(pattern)]
    return _joined_lines(client, wanted)


def _joined_lines(client: Client, wanted: FileSet) -> Iterable[tuple[str, str, str]]:
    """Yield each view line cut down to a pattern.

    Exact where pattern and line end in `...`; for other wildcards the narrower of
    the two literal parts decides.
    """
    prefix = paths.literal_prefix(wanted.pattern)
    rest = wanted.pattern[len(prefix) :]
    for line in client.view.lines:
        near, far = line.left, line.right
        if wanted.in_client_syntax:
            near, far = far, near
        near_prefix, far_prefix = paths.literal_prefix(near), paths.literal_prefix(far)
        if prefix.startswith(near_prefix) and near == near_prefix + "...":
            tail = prefix[len(near_prefix) :] + rest
            near, far = near_prefix + tail, far_prefix + tail
        elif not near_prefix.startswith(prefix):
            continue
        depot, place = (far, near) if wanted.in_client_syntax else (near, far)
        yield line.flag, depot, place


def fstat(request: Request) -> None:
    """Answer `p4 fstat`."""
    database = request.state.database
    client = request.find_client()
    opened = opened_by(database, client=client.name) if client else {}
    elsewhere = _opened_elsewhere(request)
    holders = lock_holders(database)
    fields = request.options.get("T", "").replace(",", " ").split()
    passes = parse_filter(request.options["F"]) if request.has("F") else None
    _check_letters(request, "O", known="lp")
    _check_letters(request, "R", known="cho")
    limit, shown = request.number("m", default=0), 0
    for wanted in file_sets(request):
        haves = (
            {h.path: h for h in have_in(database, wanted, client=client.name)}
            if client
            else {}
        )
        found = False
        for path, revision in _fstat_files(request, wanted, opened):
            item = opened.get(path)
            if not _passes(request, path, client, haves, item):
                continue
            record = _fstat_record(request, path, revision, client, haves, item)
            record |= _others(elsewhere.get(path, []))
            if path in holders:
                record |= _lock(holders[path], ours=request.client_name)
            if passes is not None and not passes(record):
                continue
            found = True
            if limit and shown == limit:
                break
            shown += 1
            if fields:
                record = {k: v for k, v in record.items() if k in fields}
            if request.is_tagged:
                request.record(record)
            else:
                for name, value in record.items():
                    request.send(
                        "client-OutputInfo",
                        {"data": f"{name} {value!s}".rstrip(), "level": 1},
                    )
                request.info("")
        if not found:
            request.say(wanted.nothing_found, argc=wanted.typed)


def _check_letters(request: Request, option: str, *, known: str) -> None:
    """Refuse letters of an option that would do nothing here.

    Raises: NotInLab.
    """
    if strange := set(request.options.get(option, "")) - set(known):
        raise NotInLab(f"fstat -{option}{''.join(sorted(strange))}")


def _fstat_files(
    request: Request, wanted: FileSet, opened: dict[str, Opened]
) -> Iterable[tuple[str, Revision | None]]:
    found: dict[str, Revision | None] = {r.path: r for r in _revisions(request, wanted)}
    for path, item in opened.items():
        if wanted.has_file(path=path, client_path=item.client_path):
            found.setdefault(path, None)
    return sorted(found.items())


def _passes(
    request: Request,
    path: str,
    client: Client | None,
    haves: dict[str, Have],
    item: Opened | None,
) -> bool:
    restrict = request.options.get("R", "")
    if "c" in restrict and (client is None or client.view.to_client(path) is None):
        return False
    if "h" in restrict and path not in haves:
        return False
    return not ("o" in restrict and item is None)


def _fstat_record(
    request: Request,
    path: str,
    revision: Revision | None,
    client: Client | None,
    haves: dict[str, Have],
    item: Opened | None,
) -> dict[str, Value]:
    record: dict[str, Value] = {"depotFile": path}
    place = client.view.to_client(path) if client else None
    if client is not None and place is not None:
        local = client.local_path(place)
        if "p" in request.options.get("O", ""):
            record |= {"clientFile": place, "path": local, "isMapped": ""}
        else:
            record |= {"clientFile": local, "isMapped": ""}
    if revision is not None:
        record |= {
            "headAction": revision.action,
            "headType": revision.type,
            "headTime": revision.time,
            "headRev": revision.revision,
            "headChange": revision.change,
            "headModTime": revision.modified,
        }
    if path in haves:
        record["haveRev"] = haves[path].revision
    if item is not None:
        record |= {
            "action": item.action,
            "change": item.change or "default",
            "type": item.type,
            "actionOwner": item.user,
            "workRev": item.revision or 1,
        }
    wants_digest = "l" in request.options.get("O", "")
    if wants_digest and revision is not None and not revision.is_deleted:
        record |= {"fileSize": revision.size, "digest": revision.digest}
    return record


def _opened_elsewhere(request: Request) -> dict[str, list[tuple[object, ...]]]:
    """Return by depot path who else has files open, as user, client, action, change."""
    found: dict[str, list[tuple[object, ...]]] = {}
    for path, *row in request.state.database.rows(
        "SELECT path, user, client, action, change FROM opened WHERE client<>?",
        request.client_name,
    ):
        found.setdefault(str(path), []).append(tuple(row))
    return found


def _others(rows: list[tuple[object, ...]]) -> dict[str, Value]:
    record: dict[str, Value] = {}
    for index, (user, client, action, change) in enumerate(rows):
        record[f"otherOpen{index}"] = f"{user}@{client}"
        record[f"otherAction{index}"] = str(action)
        record[f"otherChange{index}"] = str(change or "default")
    if rows:
        record["otherOpen"] = len(rows)
    return record


def _lock(holder: tuple[str, str], *, ours: str) -> dict[str, Value]:
    user, client = holder
    if client == ours:
        return {"ourLock": ""}
    return {"otherLock0": f"{user}@{client}", "otherLock": ""}


def print_files(request: Request) -> None:
    """Answer `p4 print`."""
    for wanted in file_sets(request):
        found = False
        for revision in _revisions(request, wanted):
            if revision.is_deleted:
                continue
            if request.has("o"):
                if not found:
                    _print_to_file(request, revision)
            else:
                _print_one(request, revision)
            found = True
        if not found:
            request.say(wanted.nothing_found, argc=wanted.typed)


def _print_one(request: Request, revision: Revision) -> None:
    if not request.has("q"):
        _print_header(request, revision)
    func = (
        "client-OutputText"
        if filetypes.is_text(revision.type)
        else "client-OutputBinary"
    )
    for data in _chunks(request, revision):
        request.send(func, {"data": data})


def _chunks(request: Request, revision: Revision) -> Iterator[bytes]:
    """Yield a file's content, or the part that --offset and --size choose.

    P4Java asks for all with a size of 0. Source: p4 help print.
    """
    skipped, left = _long_number(request, "offset"), _long_number(request, "size")
    is_limited = left > 0
    for data in request.state.content.chunks(revision.digest):
        wanted = data[skipped : skipped + left] if is_limited else data[skipped:]
        skipped = max(0, skipped - len(data))
        left -= len(wanted)
        yield wanted
        if is_limited and not left:
            return


def _long_number(request: Request, name: str) -> int:
    text = request.options.get(name, "0")
    if not text.isdecimal():
        raise CommandError(7198, usage=f"print --{name}=number")
    return int(text)


def _print_header(request: Request, revision: Revision) -> None:
    request.report(
        {
            "depotFile": revision.path,
            "rev": revision.revision,
            "change": revision.change,
            "action": revision.action,
            "type": revision.type,
            "time": revision.time,
            "fileSize": revision.size,
        },
        6379,
        depotFile=revision.path,
        depotRev=f"#{revision.revision}",
        action=revision.action,
        change=f"change {revision.change}",
        type=revision.type,
    )


def _print_to_file(request: Request, revision: Revision) -> None:
    if not request.has("q"):
        _print_header(request, revision)
    request.send(
        "client-OpenFile",
        {
            "path": paths.unescape(request.options["o"])
            if request.options["o"].startswith("/")
            else f"{request.cwd}/{request.options['o']}",
            "type": filetypes.wire_code(revision.type, line_end="local"),
            "handle": "print",
            "perms": "rw",
        },
    )
    for data in request.state.content.chunks(revision.digest):
        request.send("client-WriteFile", {"handle": "print", "data": data})
    request.send("client-CloseFile", {"handle": "print", "commit": ""})
    request.settle()


def dirs(request: Request) -> None:
    """Answer `p4 dirs`: the directories that match, if they hold a file."""
    for wanted in file_sets(request):
        depth = wanted.pattern.count("/")
        shown = {
            "/".join(path.split("/")[: depth + 1])
            for path in _files_below(request, wanted)
        }
        for name in sorted(shown):
            if request.is_tagged:
                request.record({"dir": name})
            else:
                request.say(6353, dirName=name)
        if not shown:
            request.say(wanted.nothing_found, argc=wanted.typed)


def _files_below(request: Request, directories: FileSet) -> Iterator[str]:
    """Yield the files below directories: those that the client has, or that are."""
    below = replace(directories, pattern=f"{directories.pattern}/...")
    if request.has("H"):
        client = request.get_client()
        for have in have_in(request.state.database, below, client=client.name):
            yield have.path
        return
    for revision in _revisions(request, below):
        if request.has("D") or not revision.is_deleted:
            yield revision.path


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
        names=("files",),
        run=files,
        usage="files [-e] [-m max] file...",
        flags="e",
        valued="m",
        absent="aAUi",
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
        names=("fstat",),
        run=fstat,
        usage="fstat [-F filter -T fields -m max -Olp -Rcho] file...",
        valued="OTRmF",
        absent="LcesArSU",
    ),
    Command(
        names=("print",),
        run=print_files,
        usage="print [-q] [-o path] [--offset=number] [--size=number] file...",
        flags="qk",
        valued="o",
        absent="aAmTK",
        long=("offset", "size"),
    ),
    Command(
        names=("dirs",),
        run=dirs,
        usage="dirs [-D -H] dir...",
        flags="DH",
        absent="CSi",
        uses_client=True,
    ),
    Command(
        names=("filelog",),
        run=filelog,
        usage="filelog [-l -t] [-m max] file...",
        flags="lt",
        valued="m",
        absent="chiLpsn1",
    ),
)
