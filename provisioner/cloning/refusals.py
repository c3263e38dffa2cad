"""Why a workspace is not cloned, or cannot be split."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class HasClones(ActionRefused):
    """“{name}” has the clone “{clone}”, which needs its snapshot. Retire and purge that
    one first, or split it."""

    code = "workspace_has_clones"


class CannotSeeSource(ActionRefused):
    """{username} may not see “{name}”. Share it with them first."""

    code = "cannot_see_source"


class SnapshotOfAnother(ActionRefused):
    """“{name}” has no such snapshot any more. Choose another one."""

    code = "snapshot_of_workspace_gone"
