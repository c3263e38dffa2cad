"""Refusals about workspaces."""

from __future__ import annotations

from provisioner.lib.refusals import ActionRefused, StepRefused


class PurposeNotSupported(ActionRefused):
    """The Perforce server “{server}” has no clients of type {type}, which workspaces
    for “{purpose}” need. Its administrator can set client.readonly.dir, which allows
    them, or bring it up to date; until then choose another purpose, such as build."""

    code = "purpose_not_supported"


class RequestKeyReused(ActionRefused):
    """This request key belongs to an earlier, different request. Use a new key, or
    repeat the first request unchanged.
    """

    code = "request_key_reused"


class WorkspaceNotReady(ActionRefused):
    """The workspace “{name}” is {state}. This is possible once that has ended."""

    code = "workspace_busy"


class WorkspaceFailed(ActionRefused):
    """The workspace “{name}” could not be created: {reason} It still exists: retry, or
    retire it.
    """

    code = "workspace_failed"


class WorkspaceRetired(ActionRefused):
    """The workspace “{name}” was retired."""

    code = "workspace_retired"


class NothingToRestore(ActionRefused):
    """The workspace “{name}” is not in the trash, so there is nothing to restore."""

    code = "nothing_to_restore"


class NotInTrash(ActionRefused):
    """The workspace “{name}” is not in the trash. Retire it first."""

    code = "not_in_trash"


class BeingTransferred(ActionRefused):
    """The work of “{name}” is being transferred into “{into}”. Wait for that to
    end, or abort it there."""

    code = "being_transferred"


class NobodyOfThatName(ActionRefused):
    """There is no {what} “{name}”. Check the spelling."""

    code = "nobody_of_that_name"


class AlreadyTheirs(ActionRefused):
    """{who} already has access to this workspace."""

    code = "already_theirs"


class NothingToCheck(ActionRefused):
    """The workspace “{name}” has nothing that can be submitted."""

    code = "nothing_to_check"


class NothingToRetry(ActionRefused):
    """The workspace “{name}” has not failed, so there is nothing to retry."""

    code = "nothing_to_retry"


class UnsubmittedWorkFound(StepRefused):
    """Retiring now would lose work; `findings` lists it by kind."""

    def __init__(self, sentence: str, *, findings: dict[str, object]) -> None:
        super().__init__(sentence, code="unsubmitted_work")
        self.findings = findings


class NfsServerUnknown(ActionRefused):
    """No NFS server is set for the site {site}. An administrator can add it on the
    site's page.
    """

    code = "nfs_server_unknown"
