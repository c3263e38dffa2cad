"""Why the directory does not sign somebody in, or is not followed."""

from __future__ import annotations

from provisioner.accounts.refusals import SignInRefused
from provisioner.lib.refusals import ActionRefused


class DirectorySilent(SignInRefused):
    """{provider} does not answer, so its passwords cannot be checked. Try again in a
    minute."""

    code = "directory_silent"


class DirectoryRefuses(SignInRefused):
    """{provider} could not look you up. Ask an administrator: the log of the web server
    says why."""

    code = "directory_refuses"


class DisabledThere(SignInRefused):
    """Your account at {provider} is {why}. Ask the people who run it."""

    code = "disabled_in_directory"


class NothingToApprove(ActionRefused):
    """This sync no longer needs approval: a newer one has run. See that one."""

    code = "nothing_to_approve"
