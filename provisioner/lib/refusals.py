"""Refusals: a person asked for something that is not possible now.

Each class is one reason with a stable `code`; its docstring is the sentence they
read, filled with the keyword arguments of the constructor.
"""

from __future__ import annotations

from typing import ClassVar

from provisioner.lib.storable import shown


class ActionRefused(Exception):
    """This is not possible now."""

    code: ClassVar[str] = "refused"

    def __init__(self, sentence: str = "", /, **facts: object) -> None:
        template = sentence or " ".join((type(self).__doc__ or "").split())
        self.facts = facts
        self.sentence = shown(template.format(**facts) if facts else template)
        super().__init__(self.sentence)


class InvalidRequest(ActionRefused):
    """What was asked for is not complete or not well formed."""

    code = "invalid"


class NotAllowed(ActionRefused):
    """You may not do this: ask the owner or an administrator."""

    code = "not_allowed"


class OutOfScope(NotAllowed):
    """This token is not for that: {what}. Use another one, or make one that is."""

    code = "token_scope"


class TicketRefused(ActionRefused):
    """The Perforce server “{server}” does not take this as a ticket of {user} here. Ask
    for one that is good on all hosts: p4 login -a -p."""

    code = "ticket_refused"


class TicketsNotTaken(ActionRefused):
    """Ticket sign-in is disabled for the Perforce server “{server}”. An administrator
    can enable it there."""

    code = "tickets_not_taken"


class NoAccount(ActionRefused):
    """The Perforce user {user} has no account here, or more than one: ask an
    administrator."""

    code = "no_account"


class PerforceAway(ActionRefused):
    """The Perforce server “{server}” could not be asked. Try again later."""

    code = "perforce_away"


class PurposeNotSupported(ActionRefused):
    """The Perforce server “{server}” has no clients of type {type}, which workspaces
    for “{purpose}” need. Its administrator can set client.readonly.dir, which allows
    them, or bring it up to date; until then choose another purpose, such as build."""

    code = "purpose_not_supported"


class NameTaken(ActionRefused):
    """The name “{name}” is taken at this site. Choose another one."""

    code = "name_taken"


class RequestKeyReused(ActionRefused):
    """This request key was used before, for a request that said something else. Use a
    new key for a new request, or send the first one again as it was."""

    code = "request_key_reused"


class AccountIncomplete(ActionRefused):
    """The account {username} has no uid and gid, so files cannot be made its own. An
    administrator can add them."""

    code = "account_incomplete"


class NoSnapshot(ActionRefused):
    """The template “{template}” has no published snapshot yet. Build it first, or wait
    for its build to end."""

    code = "no_snapshot"


class NoGoodSnapshot(ActionRefused):
    """The template “{template}” has no snapshot that is {quality}. Choose one of those
    that it has, or wait for a build that is."""

    code = "no_good_snapshot"


class SnapshotGone(ActionRefused):
    """The snapshot “{snapshot}” of this template is not there any more. Choose a newer
    one."""

    code = "snapshot_gone"


class WorkspaceNotReady(ActionRefused):
    """The workspace “{name}” is {state}. This is possible once that has ended."""

    code = "workspace_busy"


class WorkspaceFailed(ActionRefused):
    """The workspace “{name}” could not be made: {reason} It is still there: try again,
    or retire it."""

    code = "workspace_failed"


class NoHeartbeat(ActionRefused):
    """Nobody waits for a heartbeat of the workspace “{name}”: it was not asked for with
    heartbeat_seconds, or has been restored or extended since one was missed."""

    code = "no_heartbeat"


class WorkspaceRetired(ActionRefused):
    """The workspace “{name}” was retired."""

    code = "workspace_retired"


class NothingToRestore(ActionRefused):
    """The workspace “{name}” is not in the trash, so there is nothing to bring back."""

    code = "nothing_to_restore"


class NotInTrash(ActionRefused):
    """The workspace “{name}” is not in the trash. Retire it first."""

    code = "not_in_trash"


class NothingNewer(ActionRefused):
    """There is no newer snapshot to transfer the work of “{name}” to."""

    code = "nothing_newer"


class NothingGoodNewer(ActionRefused):
    """No snapshot newer than that of “{name}” is one that new workspaces get. Choose
    one of those that there are, or wait for the next build."""

    code = "nothing_good_newer"


class NothingToAbort(ActionRefused):
    """No work is being brought into “{name}”, so there is nothing to abort."""

    code = "nothing_to_abort"


class BeingTransferred(ActionRefused):
    """The work of “{name}” is being transferred into “{into}”. Wait for that to
    end, or abort it there."""

    code = "being_transferred"


class NotBeingTried(ActionRefused):
    """Change {change} is not being tried now: look which one is."""

    code = "not_being_tried"


class BisectionOver(ActionRefused):
    """This bisection is over, so there is nothing to decide any more."""

    code = "bisection_over"


class TooManyCommands(ActionRefused):
    """{running} commands of bisections of {owner} are under way, and no person may have
    more than {allowed} at a time. It goes on by itself when one has ended."""

    code = "too_many_commands"


class LeaseTooLong(ActionRefused):
    """A lease until {asked} is too long: {latest} is the latest possible now. It can
    be extended again later."""

    code = "lease_too_long"


class LeaseNotLonger(ActionRefused):
    """The lease of “{name}” would not get any longer by that."""

    code = "lease_not_longer"


class WorkspaceKept(ActionRefused):
    """The workspace “{name}” is kept without an end. Release it first."""

    code = "workspace_kept"


class WorkspaceNotKept(ActionRefused):
    """The workspace “{name}” is not kept, so there is nothing to release."""

    code = "workspace_not_kept"


class NotAllowedToKeep(NotAllowed):
    """Leases have a maximum here, so only an administrator can keep a workspace without
    an end. You can extend its lease."""

    code = "not_allowed_to_keep"


class NotAbandoned(ActionRefused):
    """The workspace “{name}” does not look abandoned any more, so nothing was done."""

    code = "not_abandoned"


class AskedAlready(ActionRefused):
    """{owner} was asked about “{name}” today (UTC) already: no second mail goes out."""

    code = "asked_already"


class WebhookOff(ActionRefused):
    """{reason} Nothing is sent until that has changed."""

    code = "webhook_off"


class PreviewStale(ActionRefused):
    """The set of affected workspaces has changed since the preview: {count} now. Check
    it again, then decide."""

    code = "preview_stale"


class NobodyOfThatName(ActionRefused):
    """There is no {what} “{name}”. Look how the name is written."""

    code = "nobody_of_that_name"


class AlreadyTheirs(ActionRefused):
    """{who} already has access to this workspace."""

    code = "already_theirs"


class NotYourself(ActionRefused):
    """You cannot change your own role: another administrator can."""

    code = "not_yourself"


class TeamExists(ActionRefused):
    """There is a team “{name}” already."""

    code = "team_exists"


class NothingToRetry(ActionRefused):
    """The workspace “{name}” has not failed, so there is nothing to try again."""

    code = "nothing_to_retry"


class TemplateBusy(ActionRefused):
    """The template “{name}” is being built. Wait for that build to end."""

    code = "template_busy"


class NothingToStop(ActionRefused):
    """The template “{name}” is not being built, or its snapshot is being taken: there
    is nothing left to stop."""

    code = "nothing_to_stop"


class TemplateInvalid(ActionRefused):
    """This template cannot be used as it is."""

    code = "template_invalid"


class FindingResolved(ActionRefused):
    """The difference about {subject} is gone already."""

    code = "finding_resolved"


class FindingNotOurs(ActionRefused):
    """There is nothing that Cloneyard can safely do about {subject}: look into it
    yourself. The finding goes away once the difference is gone."""

    code = "finding_needs_you"


class NothingToRefresh(ActionRefused):
    """The template “{template}” has no snapshot of its whole view of which parts could
    be brought up to date. Build all of it first."""

    code = "nothing_to_refresh"


class StateChanged(ActionRefused):
    """Somebody else changed this at the same moment. Check it again, then decide."""

    code = "state_changed"


class StepCutShort(Exception):
    """The operation of this step was ended, or another goes on with it: it stops."""


class StepRefused(Exception):
    """A step found a reason to stop that no second attempt will change.

    `code` is stable, `sentence` is for people. With `findings` it is no failure: what
    was asked for is refused because of them.
    """

    findings: dict[str, object] | None = None

    def __init__(self, sentence: str, *, code: str) -> None:
        self.sentence = shown(sentence)
        super().__init__(self.sentence)
        self.code = code


class UnsavedWork(StepRefused):
    """Retiring now would lose work; `findings` lists it by kind."""

    def __init__(self, sentence: str, *, findings: dict[str, object]) -> None:
        super().__init__(sentence, code="unsaved_work")
        self.findings = findings


class PoolExists(ActionRefused):
    """There is a warm pool of “{template}” for {owner} and this purpose. Change that
    one."""

    code = "pool_exists"
