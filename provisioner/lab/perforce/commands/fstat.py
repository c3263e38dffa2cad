"""p4 fstat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from provisioner.lab.perforce.clients import Client
from provisioner.lab.perforce.commands.files import revisions_of
from provisioner.lab.perforce.commands.locking import lock_holders
from provisioner.lab.perforce.commands.registry import Command
from provisioner.lab.perforce.filespec import FileSet, file_sets
from provisioner.lab.perforce.filters import parse_filter
from provisioner.lab.perforce.holdings import (
    Have,
    Opened,
    have_in,
    opened_by,
)
from provisioner.lab.perforce.integrations import Resolve, resolves_of
from provisioner.lab.perforce.messages import NotInLab
from provisioner.lab.perforce.request import Request
from provisioner.lab.perforce.revisions import (
    Revision,
    revisions_in,
)
from provisioner.lab.perforce.wire import Value


def fstat(request: Request) -> None:
    """Answer `p4 fstat`."""
    database = request.state.database
    client = request.find_client()
    opened = opened_by(database, client=client.name) if client else {}
    elsewhere = _opened_elsewhere(request)
    holders = lock_holders(database)
    fields = request.options.get("T", "").replace(",", " ").split()
    passes = parse_filter(request.options["F"]) if request.has("F") else None
    _take_old_flags(request)
    _check_letters(request, "O", known="adeflnprs")
    _check_letters(request, "R", known="chnoru")
    resolves = _resolves(request)
    limit, shown = request.number("m", default=0), 0
    for wanted in file_sets(request):
        haves = (
            {h.path: h for h in have_in(database, wanted, client=client.name)}
            if client
            else {}
        )
        found = lacks_fields = False
        for path, revision in _fstat_files(request, wanted, opened):
            item, takes = opened.get(path), resolves.get(path, [])
            if not _passes(request, path, client, haves, item):
                continue
            if not _passes_opened(request, revision, item, takes):
                continue
            record = _fstat_record(request, path, revision, client, haves, item)
            if not _has_letter(request, "O", "f"):
                record |= _others(elsewhere.get(path, []))
                if path in holders:
                    record |= _lock(holders[path], ours=request.client_name)
                if takes and _has_letter(request, "O", "r"):
                    record |= _pending(takes)
            if passes is not None and not passes(record):
                continue
            if fields:
                record = {k: v for k, v in record.items() if k in fields}
                if not record:
                    lacks_fields = True
                    continue
            found = True
            if limit and shown == limit:
                break
            shown += 1
            if request.is_tagged:
                request.record(record)
            else:
                for name, value in record.items():
                    request.send(
                        "client-OutputInfo",
                        {"data": f"{name} {value!s}".rstrip(), "level": 1},
                    )
                request.info("")
        if lacks_fields and not found:
            # A failure, not a warning: git-p4's tests take the exit of
            # `fstat -T action` for whether a file is open. The text is inferred.
            text = f"{wanted.typed} - no such field(s)."
            request.say_freely(_FAILURE, text)
        elif not found:
            request.say(wanted.nothing_found, argc=wanted.typed)


# The class of a message that makes a client exit with 1.
_FAILURE = 7198

# Flags of before 2004.2 and the letters they became. Source: p4 help fstat.
_OLD_FLAGS = (
    ("C", "R", "c"),
    ("H", "R", "h"),
    ("W", "R", "o"),
    ("P", "O", "p"),
    ("l", "O", "l"),
    ("s", "O", "s"),
)


def _take_old_flags(request: Request) -> None:
    for flag, option, letter in _OLD_FLAGS:
        if request.has(flag):
            request.options[option] = request.options.get(option, "") + letter


def _has_letter(request: Request, option: str, letter: str) -> bool:
    return letter in request.options.get(option, "")


def _resolves(request: Request) -> dict[str, list[Resolve]]:
    """Return what the client's opened files integrate from others, by depot path."""
    found: dict[str, list[Resolve]] = {}
    for item in resolves_of(request.state.database, client=request.client_name):
        found.setdefault(item.path, []).append(item)
    return found


def _passes_opened(
    request: Request,
    revision: Revision | None,
    item: Opened | None,
    takes: list[Resolve],
) -> bool:
    """Return whether -Rn, -Rr or -Ru select a file."""
    restrict = request.options.get("R", "")
    if "n" in restrict and (
        item is None or revision is None or item.revision == revision.revision
    ):
        return False
    if "r" in restrict and not any(take.how for take in takes):
        return False
    return not ("u" in restrict and all(take.how for take in takes))


def _pending(takes: list[Resolve]) -> dict[str, Value]:
    """Return the fields that -Or adds for integrations of an opened file."""
    done = sum(bool(take.how) for take in takes)
    record: dict[str, Value] = {}
    if done:
        record["resolved"] = done
    if done < len(takes):
        record["unresolved"] = len(takes) - done
    for index, take in enumerate(takes):
        record |= {
            f"resolveAction{index}": take.how or "unresolved",
            f"resolveType{index}": "content",
            f"resolveBaseFile{index}": take.base,
            f"resolveBaseRev{index}": take.base_revision,
            f"resolveFromFile{index}": take.other,
            f"resolveStartFromRev{index}": take.start or "none",
            f"resolveEndFromRev{index}": take.end,
        }
    return record


def _check_letters(request: Request, option: str, *, known: str) -> None:
    """Refuse option letters that the lab does not implement.

    Raises: NotInLab.
    """
    if strange := set(request.options.get(option, "")) - set(known):
        raise NotInLab(f"fstat -{option}{''.join(sorted(strange))}")


def _fstat_files(
    request: Request, wanted: FileSet, opened: dict[str, Opened]
) -> Iterable[tuple[str, Revision | None]]:
    found: dict[str, Revision | None] = {
        r.path: r for r in revisions_of(request, wanted)
    }
    for path, item in opened.items():
        if wanted.has_file(path=path, client_path=item.client_path):
            found.setdefault(path, None)
    files: Iterable[tuple[str, Revision | None]] = sorted(found.items())
    if _has_letter(request, "O", "f"):
        files = _every_revision(request, wanted, files)
    return list(reversed(list(files))) if request.has("r") else files


def _every_revision(
    request: Request,
    wanted: FileSet,
    files: Iterable[tuple[str, Revision | None]],
) -> Iterator[tuple[str, Revision | None]]:
    """Yield all revisions of files, each as if it were the head (-Of)."""
    by_path: dict[str, list[Revision]] = {}
    for revision in revisions_in(request.state.database, wanted):
        by_path.setdefault(revision.path, []).append(revision)
    for path, head in files:
        if head is None:
            yield path, None
        for revision in by_path.get(path, []):
            yield path, revision


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
    if _has_letter(request, "O", "s"):
        client, haves, item = None, {}, None
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
    """Return who else has files open (user, client, action, change) by depot path."""
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


COMMANDS = (
    Command(
        names=("fstat",),
        run=fstat,
        usage=(
            "fstat [-F filter -T fields -m max -r -Oadeflnprs -Rchnoru -CHWPls] file..."
        ),
        flags="CHWPlsr",
        valued="OTRmF",
        absent="LceAUS",
    ),
)
