"""The page of a workspace, as one reader sees it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.accounts.models import User
from provisioner.dashboard.overviews import WorkspaceOverview
from provisioner.dashboard.proofs import Proof, activity_of, proofs_of, space_of
from provisioner.engine.overviews import OperationOverview
from provisioner.leases.templatetags.leases import lease_words
from provisioner.lib.sizes import size_text
from provisioner.lib.times import duration_text, exact
from provisioner.recovery.overviews import recoveries_of
from provisioner.sites.availability import why_away
from provisioner.sites.models import SiteCapacity
from provisioner.web.notices import Action, Level, Notice
from provisioner.web.templatetags.cloneyard import ago, count
from provisioner.workspaces.forms import OpenForm
from provisioner.workspaces.models import LEASED, Workspace, WorkspaceOperation
from provisioner.workspaces.sharing import Company

State = Workspace.State

_FAILED: dict[str, tuple[str, str]] = {
    WorkspaceOperation.RETIRE: ("Retiring failed", "Retry continues retiring it."),
    WorkspaceOperation.PURGE: ("Purging failed", "Retry continues purging it."),
    WorkspaceOperation.RESTORE: ("Restoring failed", "Retry continues restoring it."),
}
_NOT_PROVISIONED = (
    "Provisioning failed",
    "What exists so far is kept and recorded. "
    "Retry continues from there; Retire removes it.",
)
_READS_AS = {
    "owner": "",
    "group": "Your gid is theirs, so the group permissions of each file apply to you.",
    "others": "The permissions of each file for others apply to you, or those of its "
    "group if you are a member.",
    "": "Your account has no uid here. What you may read depends on your user on that "
    "host.",
}


def _shelved(shelf: dict[str, Any]) -> SafeString:
    change, was = shelf["change"], shelf["was"]
    of = "" if was == change else f" of change {was}"
    return format_html(
        "Shelved in change <code>{}</code>: {}{}. <code>p4 unshelve -s {}</code>",
        *(change, count(len(shelf["files"]), "file", "files")),
        " of the default changelist" if was == "default" else of,
        change,
    )


@dataclass(frozen=True, kw_only=True)
class WorkspacePage:
    """A workspace as one reader sees it."""

    overview: WorkspaceOverview
    company: Company
    user: User

    @property
    def workspace(self) -> Workspace:
        return self.overview.workspace

    @property
    def back(self) -> Action:
        """The list that shows the workspace to this reader."""
        if self.workspace.owner == self.user or self.company.share:
            return Action(label="My workspaces", url=reverse("workspace-list"))
        if self.user.is_administrator:
            return Action(label="All workspaces", url=reverse("admin-workspace-list"))
        return Action(label="Team workspaces", url=reverse("workspace-team-list"))

    @property
    def happened(self) -> SafeString:
        """What happened to it last, as a sentence."""
        workspace, seconds = self.workspace, self.overview.ready_seconds
        if workspace.state == State.RETIRED:
            return format_html("Retired {}.", ago(workspace.retired_at))
        if workspace.state == State.TRASHED:
            return format_html("Moved to the trash {}.", ago(workspace.trashed_at))
        if workspace.state != State.READY or seconds is None:
            is_claimed = workspace.state == State.PROVISIONING and workspace.pool_id
            start = workspace.start_sentence if is_claimed else ""
            return format_html("Requested {}. {}", ago(workspace.created_at), start)
        took = "at once" if workspace.is_warm else f"after {duration_text(seconds)}"
        return format_html("Ready {}, {}.", ago(workspace.ready_at), took)

    @property
    def facts(self) -> list[SafeString]:
        """What it was cloned from and for whom, and when its lease ends."""
        workspace = self.workspace
        is_own = workspace.owner == self.user
        clone = format_html(
            '<a href="{}">{}</a> at change <span class="change">{}</span>{}{}',
            reverse("template-detail", args=[workspace.template_id]),
            *(workspace.template.name, workspace.snapshot.change),
            "" if is_own else f", for {workspace.owner.username}",
            "" if workspace.client_name else ", build only",
        )
        return [fact for fact in (clone, lease_words(self.overview.deadline)) if fact]

    @property
    def is_moving(self) -> bool:
        """Whether something changes on the page by itself."""
        return self.workspace.is_moving or self.overview.unsubmitted.is_checking

    @property
    def ended(self) -> OperationOverview | None:
        """Its last operation, unless one is under way."""
        return None if self.workspace.is_moving else self.overview.last

    @property
    def can_abort_transfer(self) -> bool:
        transferred = self.overview.transferred
        can_be = transferred is not None and transferred.can_be_aborted
        return can_be and self.overview.may_change

    @property
    def has_failed(self) -> bool:
        return self.workspace.state == State.FAILED

    @property
    def shelved(self) -> list[SafeString]:
        """The changes of its last rescue."""
        rescue = self.overview.rescue
        return [_shelved(shelf) for shelf in rescue.shelves] if rescue else []

    @property
    def rescue_actions(self) -> tuple[Action, ...]:
        """What can be done with the archive of its last rescue."""
        rescue = self.overview.rescue
        if rescue is None or not rescue.has_archive:
            return ()
        url = reverse("workspace-rescue", args=[self.workspace.pk, rescue.pk])
        show = Action(label="List and download", url=url, icon="download")
        return self._allowed(show)

    @property
    def open_form(self) -> OpenForm:
        return OpenForm(initial={"to": self.workspace.open_to.value})

    @property
    def shows_siblings(self) -> bool:
        company = self.company
        has_any = bool(company.siblings or company.others)
        return has_any and not self.workspace.is_put_away

    @property
    def has_lease(self) -> bool:
        return self.workspace.state in (State.READY, State.FAILED, State.PROVISIONING)

    @property
    def has_commands(self) -> bool:
        return self.workspace.state == State.READY and not self.company.share

    @property
    def can_be_checked(self) -> bool:
        return self.overview.may_change and self.overview.unsubmitted.can_be_checked

    @property
    def proofs(self) -> list[Proof]:
        """What a ready workspace contains, and how that was verified."""
        is_ready = self.workspace.state == State.READY
        return proofs_of(self.overview) if is_ready else []

    @property
    def activity(self) -> str:
        """The last activity in it."""
        is_ready = self.workspace.state == State.READY
        return activity_of(self.overview) if is_ready else ""

    @property
    def space(self) -> str:
        """How much space it takes; "" unless it is ready."""
        is_ready = self.workspace.state == State.READY
        return space_of(self.workspace) if is_ready else ""

    @property
    def space_actions(self) -> tuple[Action, ...]:
        """Where its space over time is, and how it gets independent of its snapshot."""
        if self.workspace.state != State.READY:
            return ()
        is_clone = not self.workspace.is_independent
        label = "Split from its snapshot…" if is_clone else "Space over time"
        return self._allowed(Action(label=label, url=self._url("workspace-split")))

    @property
    def editors(self) -> list[Action]:
        """Links that open its files in an editor, over the site's SSH host."""
        host, path = self.workspace.site.ssh_host, str(self.workspace.path)
        if not host:
            return []
        url = f"vscode://vscode-remote/ssh-remote+{quote(host)}{quote(path)}"
        return [Action(label="Open in VS Code", url=url)]

    @property
    def p4v_command(self) -> str:
        """The command that opens its client in P4V on the site's SSH host, or "".

        P4V has no URL scheme that a page could link to.
        """
        workspace = self.workspace
        if not (workspace.site.ssh_host and workspace.client_name):
            return ""
        port = workspace.perforce_server.p4port_for_people
        named = ("-p", port, "-u", workspace.p4_user, "-c", workspace.client_name)
        return shlex.join(["p4v", *named])

    @property
    def header_actions(self) -> list[Action]:
        """The actions that are always visible: extend, share, retire."""
        extend = share = None
        if self.overview.deadline.is_extendable:
            extend = Action(label="Extend", url=self._url("workspace-extend"))
        if self.company.may_share:
            share = Action(label="Share", url=self._url("workspace-share"))
        return [*self._allowed(extend, share), *self.actions]

    @property
    def lease_actions(self) -> tuple[Action, ...]:
        """How its lease can be changed with one click."""
        deadline = self.overview.deadline
        extend = extend_by = release = keep = None
        if deadline.is_extendable:
            extend_by = Action(label="Extend by…", url=self._url("workspace-extend"))
        if deadline.usual_extension:
            extend = Action(
                label=f"Extend until {exact(deadline.usual_extension)}",
                url=self._url("workspace-extend"),
                is_post=True,
                icon="retry",
                look="primary" if deadline.is_soon else "",
            )
        if deadline.kept_because:
            release = Action(
                label="Give it a lease again",
                url=self._url("workspace-release"),
                is_post=True,
            )
        elif self.overview.may_keep and deadline.ends_at:
            keep = Action(
                label="Keep it without an end", url=self._url("workspace-keep")
            )
        return self._allowed(extend, extend_by, release, keep)

    @property
    def notices(self) -> list[Notice]:
        """Notices, most important first."""
        found = (
            self._shared(),
            self._away(),
            self._failed(),
            self._not_retired(),
            self._in_trash(),
            self._not_restored(),
            self._filling(),
            self._withdrawn(),
            self._newer(),
        )
        return [notice for notice in found if notice is not None]

    @property
    def actions(self) -> list[Action]:
        """Actions on the whole workspace."""
        if not self.overview.may_change:
            return []
        match self.workspace.state:
            case State.READY | State.PROVISIONING:
                return [self._retire()]
            case State.RETIRING if self.overview.can_be_restored:
                return [
                    Action(
                        label="Stop and restore",
                        url=self._url("workspace-restore"),
                        is_post=True,
                    )
                ]
        return []

    def _url(self, name: str) -> str:
        return reverse(name, args=[self.workspace.pk])

    def _allowed(self, *actions: Action | None) -> tuple[Action, ...]:
        """Return these actions, or none if the reader may not change the workspace."""
        if not self.overview.may_change:
            return ()
        return tuple(action for action in actions if action is not None)

    def _retire(self) -> Action:
        return Action(
            label="Retire",
            url=self._url("workspace-retire"),
            icon="retired",
            look="quiet-danger",
        )

    def _restore(self, *, look: str = "") -> Action:
        return Action(
            label="Restore",
            url=self._url("workspace-restore"),
            is_post=True,
            icon="retry" if look else "",
            look=look,
        )

    def _shared(self) -> Notice | None:
        share, workspace = self.company.share, self.workspace
        if share is None:
            return None
        reader = "your team" if share.team_id else "you"
        owner = workspace.owner.username
        return Notice(
            level=Level.INFO,
            title=f"{owner} shares this workspace with {reader}, read-only",
            texts=(
                format_html(
                    "Its files are at <code>{}</code> on hosts that mount them. They "
                    "belong to uid {}, gid {}. The directory is open to {}. {} Do "
                    "not change anything there, even if permissions let you.",
                    *(workspace.path, workspace.uid, workspace.gid),
                    *(workspace.open_to.label, _READS_AS[self.company.reads_as]),
                ),
            ),
        )

    def _away(self) -> Notice | None:
        site = self.workspace.site
        if self.workspace.state == State.RETIRED:
            return None
        why = why_away(site, SiteCapacity.objects.filter(site=site).first())
        if not why:
            return None
        copies = recoveries_of(self.workspace, self.user).copies
        elsewhere = (
            "The workspace stays there. Where the template has a mirror, a new one can "
            "be cloned at another site."
        )
        if copies:
            elsewhere = (
                "The workspace stays there. Its last copy can be restored at another "
                "site, as a new workspace."
            )
        return Notice(
            level=Level.WARNING,
            title=f"The site {site.name} may be lost",
            texts=(why, elsewhere),
            actions=tuple(
                Action(
                    label=f"Restore at {copy.site.name}…",
                    url=reverse(
                        "workspace-copy-restore", args=(self.workspace.pk, copy.pk)
                    ),
                )
                for copy in copies
            ),
        )

    def _filling(self) -> Notice | None:
        fullness = self.workspace.fullness
        is_used = self.workspace.state in LEASED
        if fullness is None or not fullness.is_short or not is_used:
            return None
        return Notice(
            level=Level.ERROR if fullness.is_urgent else Level.WARNING,
            title=fullness.title,
            texts=(
                f"It is {fullness.sentence}",
                "Without room nothing can be written. Delete build output and files "
                "that you do not need.",
            ),
        )

    def _failed(self) -> Notice | None:
        if self.workspace.state != State.FAILED:
            return None
        last = self.overview.last
        kind = last.operation.kind if last else WorkspaceOperation.PROVISION
        title, after = _FAILED.get(kind, _NOT_PROVISIONED)
        is_restoring = kind == WorkspaceOperation.RESTORE
        is_going = kind in (WorkspaceOperation.RETIRE, WorkspaceOperation.PURGE)
        can_restore = self.overview.can_be_restored and not is_restoring
        return Notice(
            level=Level.ERROR,
            title=title,
            texts=(self.workspace.status_message, after),
            actions=self._allowed(
                Action(
                    label="Retry",
                    url=self._url("workspace-retry"),
                    is_post=True,
                    icon="retry",
                    look="primary",
                ),
                self._restore() if can_restore else None,
                None
                if is_going
                else Action(label="Retire", url=self._url("workspace-retire")),
            ),
            is_urgent=True,
        )

    def _not_retired(self) -> Notice | None:
        refused = self.overview.unsubmitted.refused
        if refused is None:
            return None
        label = (
            "Choose what happens to it"
            if self.overview.unsubmitted.found
            else "Retire again"
        )
        again = Action(label=label, url=self._url("workspace-retire"))
        return Notice(
            level=Level.WARNING,
            title="It was not retired",
            texts=(refused.status_message,),
            actions=self._allowed(again),
            is_urgent=True,
        )

    def _in_trash(self) -> Notice | None:
        workspace = self.workspace
        if workspace.state != State.TRASHED:
            return None
        frees = ""
        if workspace.unique_bytes is not None:
            frees = f" Purging it frees {size_text(workspace.unique_bytes)}."
        return Notice(
            level=Level.INFO,
            title=format_html(
                "In the trash: will be purged {}", ago(workspace.purge_at)
            ),
            texts=(
                "Restoring brings back the same path, its client and its opened files."
                + frees,
            ),
            actions=self._allowed(
                self._restore(look="primary"),
                Action(
                    label="Purge now",
                    url=self._url("workspace-purge"),
                    look="quiet-danger",
                ),
            ),
            icon_name="trash",
        )

    def _not_restored(self) -> Notice | None:
        if not self.overview.not_restored:
            return None
        return Notice(
            level=Level.WARNING,
            title="Not everything was restored",
            items=tuple(self.overview.not_restored),
        )

    def _withdrawn(self) -> Notice | None:
        snapshot = self.workspace.snapshot
        is_there = self.workspace.state != State.RETIRED
        if not (snapshot.is_withdrawn and is_there):
            return None
        assert snapshot.withdrawn_by is not None
        other = Action(
            label="Get another workspace",
            url=reverse("workspace-create", args=[self.workspace.template_id]),
        )
        return Notice(
            level=Level.WARNING,
            title=f"Its snapshot was withdrawn by {snapshot.withdrawn_by.username}",
            texts=(
                snapshot.withdraw_reason,
                "This workspace stays as it is. New workspaces do not get this "
                "snapshot.",
            ),
            actions=self._allowed(other),
        )

    def _newer(self) -> Notice | None:
        if not (self.overview.may_change and self.overview.can_be_transferred):
            return None
        transfer = Action(
            label="Transfer work",
            url=self._url("workspace-check"),
            is_post=True,
            sends={"then": "transfer"},
        )
        return Notice(
            level=Level.INFO,
            title=f"{self.workspace.template.name} has a newer snapshot",
            texts=(
                "Get a workspace of it with the files opened here. You first see "
                "what would be transferred.",
            ),
            actions=(transfer,),
        )
