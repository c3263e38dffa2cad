"""Why nothing is compared with a snapshot or taken back from it."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class SnapshotsHidden(ActionRefused):
    """{site} hides .snapshot, so files of snapshots cannot be read. An administrator
    can show it on the site's page, or clone the workspace as of the snapshot."""

    code = "snapshots_hidden"
