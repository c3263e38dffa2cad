"""Why a process is not ended."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class MailsNotSent(ActionRefused):
    """This installation sends no mail: EMAIL_URL is not set."""

    code = "mails_not_sent"


class ProcessOfTheServer(ActionRefused):
    """“{command}” belongs to the server itself: without it a replica may fall behind.
    A Perforce administrator ends it, if need be."""

    code = "process_of_the_server"
