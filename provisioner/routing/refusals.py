"""Refusals about routing."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class RoutingRuleUnfit(ActionRefused):
    """A routing rule cannot work: {why} An administrator can remove the rule."""

    code = "routing_rule_unfit"
