"""What will be done about a finding, in sentences, before anybody confirms."""

from __future__ import annotations

from typing import Any

from provisioner.workspaces.models import Finding

Kind = Finding.Kind
Action = Finding.Action


def preview(finding: Finding) -> list[str]:
    """Say what will be done when somebody confirms, in order."""
    subject, details = finding.subject, finding.details
    look = "Look again; where the difference is gone, nothing is done."
    return [
        look,
        *_PREVIEWS.get((finding.kind, finding.action), _nothing)(subject, details),
    ]


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
        f"Delete the volume {subject}, not by force: where the SVM keeps a recovery "
        "queue, it can be recovered for some hours.",
    ]


def _junction(subject: str, details: dict[str, Any]) -> list[str]:
    wanted = details.get("wanted_junction_path")
    if wanted:
        return [f"Mount {subject} at {wanted}; hosts lose sight of it elsewhere."]
    return [f"Unmount {subject} from {details.get('junction_path')}."]


_PREVIEWS: dict[tuple[str, str], Any] = {
    (Kind.VOLUME_WITHOUT_ROW, Action.REMOVE): _removing_volume,
    (Kind.VOLUME_WITHOUT_ROW, Action.ADOPT): lambda subject, details: [
        f"Note the id of {subject} on its row. Nothing on ONTAP is changed."
    ],
    (Kind.ROW_WITHOUT_VOLUME, Action.FINISH): lambda subject, details: [
        "Mark the workspace as failed, with the reason. Its files are gone already; "
        "its client stays until the workspace is retired."
    ],
    (Kind.CLIENT_WITHOUT_ROW, Action.REMOVE): lambda subject, details: [
        f"Delete the client {subject}, not by force: one with opened, pending or "
        "shelved changes stays."
    ],
    (Kind.ROW_WITHOUT_CLIENT, Action.FINISH): lambda subject, details: [
        f"Define the client {subject} as it was made, and flush it to what the "
        "snapshot has. No file is touched; “p4 reconcile” then opens what differs."
    ],
    (Kind.JUNCTION_DIFFERS, Action.FINISH): _junction,
    (Kind.CLIENT_DIFFERS, Action.FINISH): lambda subject, details: [
        f"Save the client {subject} with its Root, Owner and Host as they were made. "
        "The View stays as it is."
    ],
    (Kind.SNAPSHOT_WITHOUT_ROW, Action.REMOVE): lambda subject, details: [
        f"Delete the snapshot {subject}. ONTAP keeps one that a clone needs."
    ],
    (Kind.ROW_WITHOUT_SNAPSHOT, Action.FINISH): lambda subject, details: [
        f"Take {subject} off the offer. Nothing on ONTAP is changed."
    ],
    (Kind.JOB_UNATTENDED, Action.REMOVE): lambda subject, details: [
        f"Cancel the job {subject} in ONTAP. One that is too far on to be cancelled "
        "goes on, and is no finding any more once it has ended."
    ],
}
