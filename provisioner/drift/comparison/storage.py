"""The comparison with ONTAP: volumes, junctions, snapshots, jobs."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from provisioner.catalog.snapshot_comments import mark_of
from provisioner.catalog.volume_policies import setting_texts, settings_text
from provisioner.drift.comparison.facts import (
    Known,
    KnownSnapshot,
    KnownTree,
    SeenStorage,
    Wanted,
    about,
    tag_of_volume,
)
from provisioner.drift.models import Finding
from provisioner.gateways.ontap.types import Volume, VolumeSettings, VolumeSnapshot
from provisioner.lib.sizes import size_text

_SNAPSHOT_NAME = re.compile(r"c[0-9]+\.b[0-9]+")

Kind = Finding.Kind
Action = Finding.Action


def compare_storage(known: Known, seen: SeenStorage) -> list[Finding]:
    """Return a finding for each difference between rows and ONTAP once."""
    volumes: dict[tuple[str, str], list[Volume]] = defaultdict(list)
    for volume in seen.volumes:
        tag = tag_of_volume(volume)
        if tag is not None and tag[1] not in known.elsewhere:
            volumes[tag].append(volume)
    trees = known.by_tag()
    parents = [volume.clone_parent for volume in seen.volumes]
    cloned = {parent.volume_uuid for parent in parents if parent is not None}
    found: list[Finding] = []
    for tag, tagged in volumes.items():
        if tag in trees:
            found += _volumes_of_row(trees[tag], tagged, settings=seen.settings)
        elif known.judges_strangers:
            found += [
                _volume_of_no_mirror(volume, known, seen)
                if tag[0] == "mirror"
                else _volume_of_nobody(volume, tag, has_clones=volume.uuid in cloned)
                for volume in tagged
            ]
    for tag, tree in trees.items():
        if tree.volume is Wanted.YES and not tree.is_in_motion and tag not in volumes:
            found.append(_untagged_or_gone(tree, seen.untagged.get(tree.volume_name)))
    found += _relationships(known, seen, volumes)
    found += _snapshots(known, seen, volumes)
    return found + list(_jobs(known, seen))


def own_volume(tree: KnownTree, tagged: list[Volume]) -> Volume | None:
    """Return the one volume that is the row's: by uuid, else by name and parent."""
    for volume in tagged:
        if tree.volume_uuid and volume.uuid == tree.volume_uuid:
            return volume
    return next((volume for volume in tagged if tree.is_its_volume(volume)), None)


def _volumes_of_row(
    tree: KnownTree, tagged: list[Volume], *, settings: Mapping[str, VolumeSettings]
) -> Iterator[Finding]:
    if tree.is_in_motion:
        return
    own = own_volume(tree, tagged)
    for volume in tagged:
        if volume is not own:
            yield _copied_tag(tree, volume, own=own)
    if own is not None and tree.volume is Wanted.NO:
        yield _volume_of_retired(tree, own)
    elif own is not None:
        yield from _own_volume_differs(tree, own)
        if own.uuid == tree.volume_uuid and own.uuid in settings:
            yield from _settings_differ(tree, own, seen=settings[own.uuid])


def _copied_tag(tree: KnownTree, volume: Volume, *, own: Volume | None) -> Finding:
    details = _evidence(volume)
    if own is not None:
        details["own"] = {"name": own.name, "uuid": own.uuid, **_evidence(own)}
    return about(
        tree,
        kind=Kind.VOLUME_TAG_COPIED,
        subject=volume.name,
        external_id=volume.uuid,
        details=details,
        action=Action.REMOVE,
        sentence=f"The volume {volume.name} has the tag of {tree.title}, but is "
        "not the one that Cloneyard made for it. Somebody may have copied it. Find "
        "out whose it is. Only the tag is removed; the volume stays.",
    )


def _own_volume_differs(tree: KnownTree, own: Volume) -> Iterator[Finding]:
    if own.uuid != tree.volume_uuid:
        yield about(
            tree,
            kind=Kind.VOLUME_WITHOUT_ROW,
            subject=own.name,
            external_id=own.uuid,
            details=_evidence(own),
            action=Action.ADOPT,
            # Only our own row is written, and where it failed nobody relies on it.
            is_automatic=tree.volume is Wanted.MAYBE and tree.is_its_volume(own),
            sentence=f"The volume {own.name} belongs to {tree.title} by tag, name "
            "and parent, but its row lacks the id, as an answer was lost. "
            "Adopting it records its id.",
        )
    elif own.state not in ("", "online"):
        yield about(
            tree,
            kind=Kind.VOLUME_OFFLINE,
            subject=own.name,
            external_id=own.uuid,
            details={**_evidence(own), "wanted_junction_path": tree.junction_path},
            action=Action.FINISH,
            sentence=f"The volume {own.name} of {tree.title} is {own.state}: nobody "
            "can use it. Somebody may have taken it offline for a reason; otherwise "
            "bring it online.",
        )
    else:
        if tree.junction_path not in (None, own.junction_path):
            yield _junction_differs(tree, own)
        if tree.size_bytes is not None and own.is_resized_from(tree.size_bytes):
            yield _size_differs(tree, own, wanted=tree.size_bytes)


def _size_differs(tree: KnownTree, own: Volume, *, wanted: int) -> Finding:
    return about(
        tree,
        kind=Kind.VOLUME_SIZE_DIFFERS,
        subject=own.name,
        external_id=own.uuid,
        details={
            **_evidence(own),
            "size_bytes": own.size_bytes,
            "wanted_size_bytes": wanted,
        },
        action=Action.FINISH,
        sentence=f"The volume {own.name} of {tree.title} has "
        f"{size_text(own.size_bytes)}, and {_SAYS_SIZE[tree.kind]} "
        f"{size_text(wanted)}. Somebody may have resized it in ONTAP. "
        f"{_OTHERWISE_SIZED[tree.kind]}",
    )


_SAYS_SIZE = {
    "template": "its definition says",
    "workspace": "Cloneyard gave it",
    "mirror": "the volume of its template has",
}
_OTHERWISE_SIZED = {
    "template": "Resize it, or change the definition. The next build resizes it, too.",
    "workspace": "Resize it, unless its owner needs that size.",
    "mirror": "Resize it, so that transfers find room.",
}


def _settings_differ(
    tree: KnownTree, own: Volume, *, seen: VolumeSettings
) -> Iterator[Finding]:
    wanted = tree.settings_of(own).lacking_in(seen)
    if own.state not in ("", "online") or not wanted:
        return
    theirs, ours = setting_texts(wanted.same_of(seen)), setting_texts(wanted)
    fields = {
        name.capitalize(): {"is": theirs[name], "was": value}
        for name, value in ours.items()
    }
    yield about(
        tree,
        kind=Kind.VOLUME_SETTINGS_DIFFER,
        subject=own.name,
        external_id=own.uuid,
        details={**_evidence(own), "fields": fields},
        action=Action.FINISH,
        is_automatic=_harms_nobody(tree, wanted),
        sentence=f"The volume {own.name} of {tree.title} has "
        f"{settings_text(wanted.same_of(seen))}, and {_SAYS_SETTINGS[tree.kind]} "
        f"{settings_text(wanted)}. Somebody may have changed that in ONTAP. "
        f"{_OTHERWISE_SET[tree.kind]}",
    )


def _harms_nobody(tree: KnownTree, wanted: VolumeSettings) -> bool:
    """Return whether settings may be restored without a person.

    A thick volume takes its whole size from the aggregate, which writes to others may
    need. The security style decides how the files that somebody works with are opened.
    """
    is_in_use = tree.is_workspace and wanted.security_style is not None
    return wanted.guarantee != "volume" and not is_in_use


_SAYS_SETTINGS = {
    "template": "its policy says",
    "workspace": "it was made with",
    "mirror": "it was made with",
    "copy": "it was made with",
}
_OTHERWISE_SET = {
    "template": "Restore them, or change the policy. The next build does that, too.",
    "workspace": "Restore them, or change the policy of its template.",
    "mirror": "A thick volume takes its whole size from the aggregate. Restore them.",
    "copy": "A thick volume takes its whole size from the aggregate. Restore them.",
}


def _relationships(
    known: Known, seen: SeenStorage, volumes: dict[tuple[str, str], list[Volume]]
) -> Iterator[Finding]:
    for tag, tree in known.by_tag().items():
        is_expected = tree.is_filled and tree.volume is Wanted.YES
        own = own_volume(tree, volumes.get(tag, []))
        if own is None or not is_expected or tree.is_in_motion:
            continue
        if own.name not in seen.filled:
            yield about(
                tree,
                kind=Kind.ROW_WITHOUT_RELATIONSHIP,
                subject=own.name,
                external_id=own.uuid,
                details=_evidence(own),
                action=Action.FINISH,
                sentence=f"No SnapMirror relationship fills the volume {own.name} of "
                f"{tree.title} any more. Snapshots that are there can still be cloned. "
                "New ones do not arrive until it is created again.",
            )


def _volume_of_nobody(
    volume: Volume, tag: tuple[str, str], *, has_clones: bool
) -> Finding:
    kind, uuid = tag
    if kind == "copy":
        return _volume_of_no_copy(volume, uuid)
    holds_work = kind == "workspace" or has_clones
    return Finding(
        kind=Kind.VOLUME_WITHOUT_ROW,
        subject=volume.name,
        external_id=volume.uuid,
        tag_kind=kind,
        tag=uuid,
        details=_evidence(volume),
        action=Action.ADOPT if holds_work else Action.REMOVE,
        sentence=f"The volume {volume.name} has the tag of a {kind} that is not in "
        "this database: another installation of Cloneyard may own it, or the database "
        "was restored from before it was made. "
        + (
            "Adopting makes it a workspace again, owned by the owner of its client "
            "and files. To remove it, retire it afterwards."
            if kind == "workspace"
            else "It has clones: adopting makes it a template again, so that these "
            "can be adopted as well."
            if has_clones
            else "It has a build, and nobody's work. Remove it only if no other "
            "installation owns it. To build that again, define the template."
        ),
    )


def _volume_of_no_mirror(volume: Volume, known: Known, seen: SeenStorage) -> Finding:
    """Return the finding; what SnapMirror fills can be a mirror again."""
    tagged = tag_of_volume(volume)
    assert tagged is not None
    tag = tagged[1]
    can_be_one = volume.name in seen.filled and tag not in known.deleted
    return Finding(
        kind=Kind.VOLUME_WITHOUT_ROW,
        subject=volume.name,
        external_id=volume.uuid,
        tag_kind=Finding.TagKind.MIRROR,
        tag=tag,
        details=_evidence(volume),
        action=Action.ADOPT if can_be_one else Action.REMOVE,
        sentence=f"The volume {volume.name} has the tag of a mirror that was "
        "deleted, or is not in this database: another installation of Cloneyard may "
        "own it. It has copies of a template's snapshots. "
        + (
            "Adopting makes it a mirror again. To remove it, delete that afterwards."
            if can_be_one
            else "It is not removed while it has clones."
        ),
    )


def _volume_of_no_copy(volume: Volume, tag: str) -> Finding:
    return Finding(
        kind=Kind.VOLUME_WITHOUT_ROW,
        subject=volume.name,
        external_id=volume.uuid,
        tag_kind=Finding.TagKind.COPY,
        tag=tag,
        details=_evidence(volume),
        action=Action.REMOVE,
        sentence=f"The volume {volume.name} has the tag of a workspace's copy that was "
        "deleted, or is not in this database: another installation of Cloneyard may "
        "own it. It may have the last of somebody's work, if the original is lost. It "
        "is not removed while it has clones.",
    )


def _volume_of_retired(tree: KnownTree, volume: Volume) -> Finding:
    knows_parent = bool(tree.parent_volume) or tree.is_independent
    is_ours = tree.is_its_volume(volume) and knows_parent
    is_out_of_reach = not volume.junction_path
    cannot_hold_work = is_ours and is_out_of_reach and tree.is_settled
    return about(
        tree,
        kind=Kind.VOLUME_WITHOUT_ROW,
        subject=volume.name,
        external_id=volume.uuid,
        details=_evidence(volume),
        action=Action.REMOVE if cannot_hold_work else Action.ADOPT,
        is_automatic=cannot_hold_work,
        sentence=f"The volume {volume.name} is left of {tree.title}, which was retired."
        + (
            ""
            if tree.is_settled
            else (
                " Nothing proves that its unsubmitted work was rescued. Check that "
                "first."
            )
        )
        + (
            ""
            if is_out_of_reach
            else f" It is mounted at {volume.junction_path}: somebody may use it."
        )
        + (
            ""
            if cannot_hold_work
            else " Adopting restores the workspace. To remove it, retire it afterwards."
        ),
    )


def _untagged_or_gone(tree: KnownTree, untagged: Volume | None) -> Finding:
    if untagged is not None and tree.is_proven(untagged):
        return about(
            tree,
            kind=Kind.VOLUME_UNTAGGED,
            subject=untagged.name,
            external_id=untagged.uuid,
            details={**_evidence(untagged), "wanted_comment": tree.comment},
            action=Action.FINISH,
            sentence=f"The volume {untagged.name} of {tree.title} no longer has its "
            "tag. Its name, its id and its parent are those of the volume "
            "that Cloneyard made.",
        )
    return about(
        tree,
        kind=Kind.ROW_WITHOUT_VOLUME,
        subject=tree.volume_name,
        external_id=tree.volume_uuid,
        details={"found": untagged.name, **_evidence(untagged)} if untagged else {},
        action=Action.FINISH,
        sentence=" ".join(
            [
                f"The volume {tree.volume_name} of {tree.title} is no longer on the "
                "SVM.",
                *([_taken_over(tree, untagged)] if untagged else []),
                _WHEN_LOST[tree.kind],
            ]
        ),
    )


_WHEN_LOST = {
    "workspace": "Finishing marks the workspace as failed, so that its owner sees it "
    "and can retire what is left.",
    "template": "The repair marks the template as failed and withdraws its snapshots. "
    "Its next build creates a new volume.",
    "copy": "Nothing can be restored from it. The repair deletes the copy, and another "
    "one is made.",
    "mirror": "Nothing can be cloned there. The repair creates the mirror again and "
    "transfers the default snapshot.",
}


def _taken_over(tree: KnownTree, volume: Volume) -> str:
    if volume.uuid == tree.volume_uuid:
        return (
            f"It is named {volume.name} or has another parent now, and does not carry "
            f"its tag: somebody took it over. To keep it in Cloneyard, name it "
            f"{tree.volume_name} again and set its comment to {tree.comment} in ONTAP."
        )
    return "Another volume has its name now and is left alone."


def _junction_differs(tree: KnownTree, volume: Volume) -> Finding:
    is_at = (
        f"mounted at {volume.junction_path}" if volume.junction_path else "unmounted"
    )
    wanted = f"be mounted at {tree.junction_path}" if tree.junction_path else "not be"
    return about(
        tree,
        kind=Kind.JUNCTION_DIFFERS,
        subject=volume.name,
        external_id=volume.uuid,
        details={**_evidence(volume), "wanted_junction_path": tree.junction_path},
        action=Action.FINISH,
        sentence=f"The volume {volume.name} of {tree.title} is {is_at} and should "
        f"{wanted}.",
    )


def _snapshots(
    known: Known, seen: SeenStorage, volumes: dict[tuple[str, str], list[Volume]]
) -> Iterator[Finding]:
    rows: dict[tuple[str, int], list[KnownSnapshot]] = defaultdict(list)
    for row in known.snapshots:
        rows[row.of].append(row)
    pinned = {
        (volume.clone_parent.volume_uuid, volume.clone_parent.snapshot_name)
        for volume in seen.volumes
        if volume.clone_parent is not None
    }
    for tag, tree in known.by_tag().items():
        own = own_volume(tree, volumes.get(tag, []))
        if tree.is_workspace or tree.is_in_motion or own is None:
            continue
        if own.uuid not in seen.snapshots:
            continue
        there, of_tree = seen.snapshots[own.uuid], rows[tree.kind, tree.id]
        yield from _snapshots_that_are_gone(tree, own, of_tree, there)
        if tree.is_mirror:  # only ONTAP deletes what is at a destination
            continue
        for snapshot in there:
            is_pinned = bool(snapshot.owners) or (own.uuid, snapshot.name) in pinned
            if not is_pinned:
                yield from _snapshot_of_nobody(
                    tree, own, of_tree, snapshot, builds=known.builds
                )


def _snapshots_that_are_gone(
    tree: KnownTree,
    volume: Volume,
    rows: list[KnownSnapshot],
    there: tuple[VolumeSnapshot, ...],
) -> Iterator[Finding]:
    uuids = {snapshot.uuid for snapshot in there}
    for row in rows:
        if row.is_published and row.uuid not in uuids:
            yield about(
                tree,
                kind=Kind.ROW_WITHOUT_SNAPSHOT,
                subject=f"{volume.name}@{row.name}",
                external_id=row.uuid,
                volume_uuid=volume.uuid,
                snapshot=row.name,
                action=Action.FINISH,
                sentence=f"The snapshot {row.name} of {tree.title} is gone from the "
                "site. The repair marks it as gone. Transfer it again to clone from it."
                if tree.is_mirror
                else f"The published snapshot {row.name} of {tree.title} is gone "
                "from ONTAP. Finishing withdraws it; existing workspaces are not "
                "touched.",
            )


def _snapshot_of_nobody(
    tree: KnownTree,
    volume: Volume,
    rows: list[KnownSnapshot],
    snapshot: VolumeSnapshot,
    *,
    builds: frozenset[tuple[int, str]],
) -> Iterator[Finding]:
    is_ours = _SNAPSHOT_NAME.fullmatch(snapshot.name) and snapshot.comment.startswith(
        f"{tree.comment} "
    )
    row = next((row for row in rows if row.name == snapshot.name), None)
    if not is_ours or (row is not None and (row.is_published or row.is_needed)):
        return
    mark = mark_of(snapshot.comment)
    if row is None and mark is not None and (tree.id, mark.asked) not in builds:
        yield about(
            tree,
            kind=Kind.SNAPSHOT_WITHOUT_ROW,
            subject=f"{volume.name}@{snapshot.name}",
            external_id=snapshot.uuid,
            volume_uuid=volume.uuid,
            snapshot=snapshot.name,
            action=Action.ADOPT,
            sentence=f"The snapshot {snapshot.name} of {tree.title} is of a build "
            "that this database does not know, as after an older backup "
            "was restored. Once adopted it can be chosen again, and is "
            "pruned when unused.",
        )
        return
    why = "was never published" if row is None else "is no longer published"
    yield about(
        tree,
        kind=Kind.SNAPSHOT_WITHOUT_ROW,
        subject=f"{volume.name}@{snapshot.name}",
        external_id=snapshot.uuid,
        volume_uuid=volume.uuid,
        snapshot=snapshot.name,
        action=Action.REMOVE,
        is_automatic=row is None and mark is not None,
        sentence=f"The snapshot {snapshot.name} of {tree.title} {why}, and no clone "
        "needs it.",
    )


def _jobs(known: Known, seen: SeenStorage) -> Iterator[Finding]:
    unfinished = {job.uuid: job for job in seen.jobs}
    for row in known.jobs:
        job = unfinished.get(row.uuid)
        if job is not None:
            yield Finding(
                kind=Kind.JOB_UNATTENDED,
                subject=row.uuid,
                external_id=row.uuid,
                details={
                    "state": job.state,
                    "description": job.description,
                    "message": job.message,
                    "operation": row.operation_id,
                    "step": row.step,
                },
                workspace_id=row.workspace_id,
                template_id=row.template_id,
                mirror_id=row.mirror_id,
                copy_id=row.copy_id,
                action=Action.REMOVE,
                sentence=f"ONTAP is still at work on {job.description or 'a job'} "
                f"for the step {row.step}, which has ended. Nothing waits "
                "for it. Let it end, or cancel it.",
            )


def _evidence(volume: Volume) -> dict[str, Any]:
    parent = volume.clone_parent
    return {
        "comment": volume.comment,
        "state": volume.state,
        "junction_path": volume.junction_path,
        "parent": f"{parent.volume_name}@{parent.snapshot_name}" if parent else "",
        "used_bytes": volume.used_bytes,
        "created_at": volume.created_at.isoformat() if volume.created_at else "",
    }
