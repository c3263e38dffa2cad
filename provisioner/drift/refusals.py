"""Refusals about findings."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class FindingResolved(ActionRefused):
    """The difference about {subject} is already gone."""

    code = "finding_resolved"


class FindingNotOurs(ActionRefused):
    """There is nothing that Cloneyard can safely do about {subject}. Look into it
    yourself. The finding is resolved once the difference is gone.
    """

    code = "finding_needs_you"
