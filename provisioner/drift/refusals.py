"""Why something about findings is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class FindingResolved(ActionRefused):
    """The difference about {subject} is gone already."""

    code = "finding_resolved"


class FindingNotOurs(ActionRefused):
    """There is nothing that Cloneyard can safely do about {subject}: look into it
    yourself. The finding goes away once the difference is gone."""

    code = "finding_needs_you"
