"""Why something about drills is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NoDrillPlan(ActionRefused):
    """{server} has no plan of drills. An administrator makes one."""

    code = "no_drill_plan"
