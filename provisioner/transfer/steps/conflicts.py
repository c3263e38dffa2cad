"""Conflicts of a transfer that a person decides, with the commands for it.

Commands are run in the new workspace, from its root.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from provisioner.gateways.perforce.shelves.copies import AS_OPENED
from provisioner.gateways.perforce.types import OpenedFile, ToResolve
from provisioner.transfer.models import Conflict, Transfer

Kind = Conflict.Kind


def _conflict(
    kind: Kind, path: str, sentence: str, *commands: tuple[str, str]
) -> Conflict:
    return Conflict(
        kind=kind,
        path=path,
        sentence=sentence,
        commands=[{"run": run, "does": does} for run, does in commands],
    )


def record_conflicts(
    transfer: Transfer, stage: Conflict.Stage, found: Iterable[Conflict]
) -> None:
    """Write the conflicts of a stage, in place of those of an earlier attempt."""
    transfer.conflicts.filter(stage=stage).delete()
    rows = list(found)
    for conflict in rows:
        conflict.transfer, conflict.stage = transfer, stage
    Conflict.objects.bulk_create(rows)


def needs_resolve(item: ToResolve) -> Conflict:
    """Both sides changed the same lines, or the file cannot be merged."""
    path = shlex.quote(item.depot_file)
    return _conflict(
        Kind.RESOLVE,
        item.depot_file,
        f"You and others changed it, up to #{item.from_revision.lstrip('#')}, in ways "
        f"that cannot be merged automatically. It is opened with your content.",
        (f"p4 resolve {path}", "merges it by hand"),
        (f"p4 resolve -ay {path}", "keeps your content"),
        (f"p4 resolve -at {path}", "takes the content of others"),
    )


def deleted_there(path: str, *, change: int) -> Conflict:
    """Opened here, deleted by others."""
    quoted = shlex.quote(path)
    return _conflict(
        Kind.DELETED_THERE,
        path,
        "Others deleted it. It is opened with your content.",
        (f"p4 revert -k {quoted}", "to keep it, first: forgets that it was opened"),
        (f"p4 sync -k {quoted}#none", "then: forgets that you had it"),
        (f"p4 add {quoted}", "then: adds it again with your content"),
        (f"p4 revert {quoted}", "to give it up, first: drops your content"),
        (f"p4 sync {quoted}@{change}", "then: deletes it"),
    )


def changed_there(file: OpenedFile, *, change: int) -> Conflict:
    """Deleted or moved here, changed by others."""
    path, other = shlex.quote(file.depot_file), shlex.quote(file.moved_file)
    if file.moved_file:
        return _conflict(
            Kind.CHANGED_THERE,
            file.depot_file,
            f"You moved it to {file.moved_file}, and others changed it: what they did "
            "is not in your file.",
            (
                f"p4 diff2 -u {path}#{file.revision} {path}@{change}",
                "shows what others did",
            ),
            (f"p4 sync {path} {other}", "before submitting, first"),
            (f"p4 resolve {other}", "then: merges it into your file"),
        )
    return _conflict(
        Kind.CHANGED_THERE,
        file.depot_file,
        "You opened it for delete, and others changed it.",
        (
            f"p4 diff2 -u {path}#{file.revision} {path}@{change}",
            "shows what others did",
        ),
        (f"p4 revert -k {path}", "to delete it all the same, first"),
        (f"p4 sync -k {path}@{change}", "then"),
        (f"p4 delete {path}", "then: deletes it as it is now"),
        (f"p4 revert {path}", "to keep it, first"),
        (f"p4 sync -f {path}@{change}", "then: fetches the others' version"),
    )


def not_taken(file: OpenedFile, *, reason: str) -> Conflict:
    """Not opened in the new workspace; a copy of it is named later."""
    is_exclusive = "l" in file.type.partition("+")[2]
    sentence = f"It could not be opened for {file.action}: {reason.rstrip('.')}."
    if is_exclusive:
        sentence = (
            "Only one client may open it (+l), and the old workspace has it opened. "
            f"The server said: {reason.rstrip('.')}."
        )
    return _conflict(
        Kind.EXCLUSIVE if is_exclusive else Kind.NOT_OPENED, file.depot_file, sentence
    )


def with_copy(conflict: Conflict, file: OpenedFile, *, place: str, copy: str) -> None:
    """Add to a conflict where the copy of its file is, and what to do."""
    path, name, kept = (shlex.quote(p) for p in (file.depot_file, place, copy))
    conflict.is_copied = True
    conflict.sentence += f" Your content is in {copy}."
    opening = {"edit": "edit", "integrate": "edit"}.get(file.action, "add")
    if conflict.kind == Kind.EXCLUSIVE:
        conflict.commands = [
            {
                "run": f"p4 {opening} {path}",
                "does": "once the old workspace is retired: opens it",
            },
            {"run": f"mv -f {kept} {name}", "does": "then: has your content in it"},
        ]
        return
    conflict.commands = [
        {"run": f"p4 files {path}", "does": "shows its history"},
        {"run": f"mv -f {kept} {name}", "does": "to keep yours, first"},
        {"run": f"p4 reconcile {name}", "does": "then: opens it as it is now"},
        {"run": f"rm {kept}", "does": "to give up yours"},
    ]


def without_copy(conflict: Conflict, *, reason: str) -> None:
    """Add to a conflict why there is no copy of its file."""
    conflict.is_copied = False
    conflict.sentence += f" Its content could not be copied: {reason}"


def history_lost(file: OpenedFile) -> Conflict:
    """Its content arrived without its integration history."""
    became = AS_OPENED[file.action]
    return _conflict(
        Kind.HISTORY,
        file.depot_file,
        f"It was opened for {file.action} and is now opened for {became}: its "
        "content arrived, its integration history did not.",
        (
            f"p4 integrate -f SOURCE {shlex.quote(file.depot_file)}",
            "records the source again, if that is needed",
        ),
    )


def built_there(place: str, aside: str) -> Conflict:
    """A new file has the same name as a build output."""
    name, kept = shlex.quote(place), shlex.quote(aside)
    return _conflict(
        Kind.BUILT_THERE,
        place,
        f"You added it, and the new snapshot has something else there, which is in "
        f"{aside} now.",
        (f"diff {kept} {name}", "shows how they differ"),
        (f"rm -r {kept}", "deletes the one of the new snapshot"),
    )


def kept_aside(place: str, copy: str) -> Conflict:
    """An untracked file whose name another file has in the new workspace."""
    name, kept = shlex.quote(place), shlex.quote(copy)
    return _conflict(
        Kind.KEPT_ASIDE,
        place,
        f"It is untracked, and the new snapshot has another one of that name. Yours "
        f"is in {copy}.",
        (f"diff {name} {kept}", "shows how they differ"),
        (f"mv -f {kept} {name}", "takes yours"),
        (f"rm {kept}", "lets yours go"),
    )


def not_copied(place: str, *, reason: str) -> Conflict:
    """A file that could not be read here or written there."""
    return _conflict(
        Kind.NOT_COPIED,
        place,
        f"It could not be copied: {reason} It is in the old workspace.",
    )


def differs(path: str, *, reason: str) -> Conflict:
    """The comparison found a difference from the plan."""
    return _conflict(
        Kind.DIFFERS,
        path,
        reason,
        (f"p4 opened {shlex.quote(path)}", "shows how it is opened"),
    )
