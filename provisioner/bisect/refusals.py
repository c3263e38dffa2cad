"""Why something about bisections is refused."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NotBeingTried(ActionRefused):
    """Change {change} is not the one being tested. Reload to see the current one."""

    code = "not_being_tried"


class BisectionOver(ActionRefused):
    """This bisection is over, so there is nothing to decide any more."""

    code = "bisection_over"


class TooManyCommands(ActionRefused):
    """{running} commands of bisections of {owner} are under way, and no person may have
    more than {allowed} at a time. It goes on by itself when one has ended."""

    code = "too_many_commands"
