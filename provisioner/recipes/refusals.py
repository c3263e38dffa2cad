"""Why something about checkpoints is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class CheckpointsForAdministrators(ActionRefused):
    """A checkpoint has everybody's password hashes. Ask an administrator to make it."""

    code = "checkpoints_for_administrators"
    http_status = 403
    field = "purpose"


class NoCheckpointPlan(ActionRefused):
    """No directory for checkpoints of {server} on {host} is set. Change its
    plan, or choose the plan's host."""

    code = "no_checkpoint_plan"
    field = "purpose"
