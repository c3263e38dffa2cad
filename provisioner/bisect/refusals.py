"""Refusals about bisections."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NotBeingTried(ActionRefused):
    """Change {change} is not the one being tested. Reload to see the current one."""

    code = "not_being_tried"


class BisectionOver(ActionRefused):
    """This bisection has ended, so there is nothing left to decide."""

    code = "bisection_over"


class TooManyBisections(ActionRefused):
    """{owner} has {running} bisections running, and no person may have more than
    {allowed} at a time: {which}. Stop one, or wait until it has ended.
    """

    code = "too_many_bisections"


class TooManyCommands(ActionRefused):
    """{owner} has {running} bisection commands running, and a person may have {allowed}
    at a time. This one continues by itself when another has ended."""

    code = "too_many_commands"
