"""Refusals about rescues."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NothingArchived(ActionRefused):
    """This rescue has no archive. All of it is in its shelved changes."""

    code = "nothing_archived"


class RescueRemoved(ActionRefused):
    """The archive was removed: {directory} no longer exists."""

    code = "rescue_removed"


class RescueUnreadable(ActionRefused):
    """The archive cannot be read. {reason}"""

    code = "rescue_unreadable"


class RescueDamaged(ActionRefused):
    """The list of the archive's contents is damaged. The archive may still be complete:
    download it, and compare its checksum.
    """

    code = "rescue_damaged"


class NoHostAnswers(ActionRefused):
    """No host worker of the site {site} answers, so nobody can read the archive now.
    Try again later, or tell an administrator.
    """

    code = "no_host_answers"
