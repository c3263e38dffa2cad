"""Previews of repairs, in sentences."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone

from provisioner.drift.models import Finding
from provisioner.lib.sizes import size_text
from provisioner.lib.times import duration_text, exact_text

Kind = Finding.Kind
Action = Finding.Action


def preview(finding: Finding) -> list[str]:
    """Yield what the repair will do, in order."""
    subject, details = finding.subject, finding.details
    look = "Check it again. If the difference is gone, do nothing."
    key = (finding.kind, finding.action)
    others = _OF_COPIES if finding.is_of_copy else {}
    of_kind = (_OF_MIRRORS if finding.is_of_mirror else others).get(key)
    return [look, *(of_kind or _PREVIEWS.get(key, _nothing))(subject, details)]


def _nothing(subject: str, details: dict[str, Any]) -> list[str]:
    return []


def _removing_volume(subject: str, details: dict[str, Any]) -> list[str]:
    unmount = (
        [f"Unmount {subject} from {details['junction_path']}."]
        if details.get("junction_path")
        else []
    )
    return [
        *unmount,
        f"Delete the volume {subject} without force: if the SVM has a recovery "
        "queue, it can be recovered for some hours.",
    ]


def _adopting_volume(subject: str, details: dict[str, Any]) -> list[str]:
    if obstacle := details.get("obstacle"):
        return [f"Adoption would write nothing now: {obstacle}"]
    row = details.get("row")
    if row is None:
        return [
            f"Record the id of {subject} on its row.",
            "If the workspace was retired, restore it as from the trash: mounted at "
            "its "
            "path, with its client.",
        ]
    if "mirror" in row:
        return [
            f"Make the mirror {row['mirror']}, of {row['template']} at {row['home']}. "
            f"It keeps {row['keep']} snapshots.",
            "Snapshots with the same version at both ends can be cloned again. When "
            "transfers started and how fast they were is not known. Nothing on ONTAP "
            "is changed.",
        ]
    if "owner" not in row:
        return [
            f"Make the template {row['template']}, with the view of its client "
            f"{row['client']}; its path is {row['path']}.",
            f"Its state is {row['state']}: commands and environment are not known, and "
            "have to be completed before it is built. Its clones can be adopted then.",
        ]
    return [
        f"Make the workspace {row['name']} of {row['owner']}, for {row['purpose']}: of "
        f"{row['template']} at change {row['change']} ({row['snapshot']}).",
        f"Its client is {row['client']}." if row["client"] else "It has no client.",
        f"Its path is {row['path']}.",
        f"Its state is {row['state']}"
        + (f", because {row['missing']}." if row["missing"] else "."),
        _lease(row["lease_seconds"]),
        "Shares, notes and token are not known. Nothing on ONTAP or in Perforce is "
        "changed.",
    ]


def _lease(seconds: int | None) -> str:
    if seconds is None:
        return "Its lease does not end by itself."
    ends_at = timezone.localtime() + dt.timedelta(seconds=seconds)
    return (
        f"Its lease begins with that and lasts {duration_text(seconds)}: until "
        f"{exact_text(ends_at)}, if that is now."
    )


def _adopting_snapshot(subject: str, details: dict[str, Any]) -> list[str]:
    if obstacle := details.get("obstacle"):
        return [f"Adoption would write nothing now: {obstacle}"]
    row = details.get("row")
    if row is None:
        return [f"Write a row for {subject}. Nothing on ONTAP is changed."]
    holds = "" if row["files"] is None else f", with {row['files']:,} files"
    return [
        f"Write a row for the snapshot {row['snapshot']} of {row['template']}: change "
        f"{row['change']}{holds}. Nothing on ONTAP is changed.",
        "It is never the default: whether its tests passed is unknown."
        if row["is_offered"]
        else "It is kept for its clones, and never offered: its exact contents are "
        "unknown.",
    ]


def _junction(subject: str, details: dict[str, Any]) -> list[str]:
    wanted = details.get("wanted_junction_path")
    if wanted:
        return [f"Mount {subject} at {wanted}; hosts no longer see it elsewhere."]
    return [f"Unmount {subject} from {details.get('junction_path')}."]


def _offline(subject: str, details: dict[str, Any]) -> list[str]:
    wanted = details.get("wanted_junction_path")
    mount = [f"Mount it at {wanted}, where it should be."] if wanted else []
    return [f"Bring {subject} online. Its files are not touched.", *mount]


def _lost_volume(subject: str, details: dict[str, Any]) -> list[str]:
    left = details.get("found")
    return [
        "Mark what it belongs to as failed, with the reason. The client of a workspace "
        "stays until that is retired; snapshots of a template are withdrawn.",
        *([f"{left} is left as it is."] if left else []),
    ]


def _view(subject: str, details: dict[str, Any]) -> list[str]:
    return [
        f"Stop if {subject} has files opened that its former View does not map.",
        *(f"Remove from the View: {line}" for line in details.get("lines_out", ())),
        *(f"Add to the View: {line}" for line in details.get("lines_in", ())),
        "No file is touched. The next p4 sync brings files that are mapped again,  "
        "and removes unchanged ones that no longer are.",
    ]


def _mirror_again(subject: str, details: dict[str, Any]) -> list[str]:
    return [
        f"Retry the mirror: create {subject} and its SnapMirror relationship where "
        "they are missing.",
        "Transfer the default snapshot unless it is there.",
    ]


_OF_MIRRORS: dict[tuple[str, str], Any] = {
    (Kind.VOLUME_WITHOUT_ROW, Action.REMOVE): lambda subject, details: [
        f"Stop if {subject} has clones.",
        "Delete the SnapMirror relationship that fills it, and release it at its "
        "source if that can be reached.",
        *_removing_volume(subject, details),
    ],
    (Kind.ROW_WITHOUT_VOLUME, Action.FINISH): _mirror_again,
    (Kind.ROW_WITHOUT_SNAPSHOT, Action.FINISH): lambda subject, details: [
        f"Mark {subject} as gone at the site. ONTAP is not changed."
    ],
}


def _copy_again(subject: str, details: dict[str, Any]) -> list[str]:
    return [
        f"Delete the copy with what is left of {subject} and its relationship.",
        "The next sweep makes another copy of the workspace.",
    ]


_OF_COPIES: dict[tuple[str, str], Any] = {
    (Kind.VOLUME_WITHOUT_ROW, Action.REMOVE): _OF_MIRRORS[
        Kind.VOLUME_WITHOUT_ROW, Action.REMOVE
    ],
    (Kind.ROW_WITHOUT_VOLUME, Action.FINISH): _copy_again,
    (Kind.ROW_WITHOUT_RELATIONSHIP, Action.FINISH): _copy_again,
}


def _settings(subject: str, details: dict[str, Any]) -> list[str]:
    fields = details.get("fields", {})
    acts = [
        f"Set in ONTAP for {subject}: {name.lower()} {sides['was']}, instead of "
        f"{sides['is']}."
        for name, sides in fields.items()
    ]
    if fields.get("Guarantee", {}).get("was") == "volume":
        acts.append("A thick volume takes its whole size from the aggregate.")
    return [*acts, "No file is changed, and no size."]


def _size(details: dict[str, Any], name: str) -> str:
    return size_text(int(details.get(name, 0)))


_PREVIEWS: dict[tuple[str, str], Any] = {
    (Kind.VOLUME_WITHOUT_ROW, Action.REMOVE): _removing_volume,
    (Kind.VOLUME_WITHOUT_ROW, Action.ADOPT): _adopting_volume,
    (Kind.ROW_WITHOUT_VOLUME, Action.FINISH): _lost_volume,
    (Kind.VOLUME_TAG_COPIED, Action.REMOVE): lambda subject, details: [
        f"Empty the comment of {subject}, which only has the tag "
        f"{details.get('comment', '')}. Files, name and mount stay as they are."
    ],
    (Kind.VOLUME_UNTAGGED, Action.FINISH): lambda subject, details: [
        "Stop unless name, id and parent are still those of the volume we made.",
        f"Set the comment of {subject} to {details.get('wanted_comment')}; it is "
        f"“{details.get('comment', '')}” now.",
    ],
    (Kind.VOLUME_OFFLINE, Action.FINISH): _offline,
    (Kind.VOLUME_SIZE_DIFFERS, Action.FINISH): lambda subject, details: [
        f"Stop if {subject} holds more than {_size(details, 'wanted_size_bytes')}.",
        f"Resize {subject} from {_size(details, 'size_bytes')} to "
        f"{_size(details, 'wanted_size_bytes')}. No file is changed.",
    ],
    (Kind.VOLUME_SETTINGS_DIFFER, Action.FINISH): _settings,
    (Kind.CLIENT_TAG_COPIED, Action.REMOVE): lambda subject, details: [
        f"Save the client {subject} with a description without our tag. Nothing else "
        "of it is changed."
    ],
    (Kind.CLIENT_VIEW_DIFFERS, Action.FINISH): _view,
    (Kind.CLIENT_WITHOUT_ROW, Action.REMOVE): lambda subject, details: [
        f"Delete the client {subject} without force: one with opened, pending or "
        "shelved changes stays."
    ],
    (Kind.ROW_WITHOUT_CLIENT, Action.FINISH): lambda subject, details: [
        f"Define the client {subject} as it was made. That of a workspace is flushed "
        "to what the snapshot has; no file is touched."
    ],
    (Kind.JUNCTION_DIFFERS, Action.FINISH): _junction,
    (Kind.CLIENT_DIFFERS, Action.FINISH): lambda subject, details: [
        f"Save the client {subject} with its Root, Owner and Host as they were made. "
        "The View stays as it is."
    ],
    (Kind.SNAPSHOT_WITHOUT_ROW, Action.REMOVE): lambda subject, details: [
        f"Delete the snapshot {subject}. ONTAP keeps one that a clone needs."
    ],
    (Kind.SNAPSHOT_WITHOUT_ROW, Action.ADOPT): _adopting_snapshot,
    (Kind.ROW_WITHOUT_RELATIONSHIP, Action.FINISH): _mirror_again,
    (Kind.ROW_WITHOUT_SNAPSHOT, Action.FINISH): lambda subject, details: [
        f"Withdraw {subject}. ONTAP is not changed."
    ],
    (Kind.JOB_UNATTENDED, Action.REMOVE): lambda subject, details: [
        f"Cancel the job {subject} in ONTAP. If it can no longer be canceled it "
        "continues, and the finding is resolved once it has ended."
    ],
}
