"""Why a log is not read."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NotAServerLog(ActionRefused):
    """This is not the log of a Perforce server: no line says “Perforce server info:”.
    Choose the file that P4LOG names."""

    code = "not_a_server_log"
    http_status = 400


class LogTooLarge(ActionRefused):
    """The log is larger than {most}. Split it."""

    code = "log_too_large"
    http_status = 400


class LogNotKept(ActionRefused):
    """The log could not be kept. {reason}"""

    code = "log_not_kept"
