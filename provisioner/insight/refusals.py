"""Why a process is not ended."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class ProcessOfTheServer(ActionRefused):
    """“{command}” belongs to the server itself: without it a replica may fall behind.
    A Perforce administrator ends it, if need be."""

    code = "process_of_the_server"
