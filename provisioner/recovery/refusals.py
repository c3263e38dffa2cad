"""Why a workspace is not restored from a copy."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused


class NothingCopied(ActionRefused):
    """Nothing of “{name}” has arrived at {site} yet."""

    code = "nothing_copied"


class OriginalAnswers(ActionRefused):
    """{site} answers, so “{name}” can be used there. If it has been stopped for good,
    an administrator can confirm that and restore it."""

    code = "original_answers"


class CopyGoes(ActionRefused):
    """The copy of “{name}” at {site} is being deleted."""

    code = "copy_goes"
