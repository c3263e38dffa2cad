"""Why nothing is compared with a snapshot, taken back from it or restored to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from provisioner.gateways.perforce.types import OpenedFile
from provisioner.lib.refusals import ActionRefused, StepRefused

OPENED_SHOWN = 50


class SnapshotsHidden(ActionRefused):
    """{site} hides .snapshot in clones, so files of snapshots cannot be read. Clone the
    workspace as of the snapshot, or ask an administrator to show .snapshot."""

    code = "snapshots_hidden"


class ClientNotRecorded(ActionRefused):
    """What the client had at this snapshot is not recorded yet. Try again in a few
    minutes, or take back single files."""

    code = "client_not_recorded"


class NothingFailed(ActionRefused):
    """Nothing is left to retry: the last restore from this snapshot wrote all files."""

    code = "nothing_failed"


class FilesOpened(StepRefused):
    """Restoring now would lose what is opened; `findings` has the first files."""

    def __init__(self, opened: Sequence[OpenedFile]) -> None:
        super().__init__(
            f"Files are opened: {len(opened):,}. Submit or shelve them, then revert "
            "them, and restore again. Or clone the workspace as of the snapshot.",
            code="files_opened",
        )
        first = opened[:OPENED_SHOWN]
        self.findings = {"opened": [dataclasses.asdict(file) for file in first]}
