"""Workspaces as cards of the home page."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString

from provisioner.accounts.models import User
from provisioner.leases.queries import LeaseEnd
from provisioner.leases.templatetags.leases import lease_words
from provisioner.web.templatetags.cloneyard import ago
from provisioner.workspaces.models import Workspace


@dataclass(frozen=True, kw_only=True)
class WorkspaceCard:
    """A workspace as one reader sees it among others.

    `lease` is None where that does not concern them.
    """

    workspace: Workspace
    user: User
    lease: LeaseEnd | None = None

    @property
    def is_moving(self) -> bool:
        return self.workspace.is_moving

    @property
    def facts(self) -> list[str]:
        """Whose it is, what it was cloned from, what happened, and what will."""
        workspace = self.workspace
        is_own = workspace.owner_id == self.user.pk
        facts = (
            "" if is_own else f"of {workspace.owner.username}",
            format_html(
                '{} at change <span class="change">{}</span>',
                *(workspace.template.name, workspace.snapshot.change),
            ),
            self._moment,
            "" if workspace.client_name else "build only",
            lease_words(self.lease) if self.lease else "",
        )
        return [fact for fact in facts if fact]

    @property
    def _moment(self) -> SafeString:
        workspace = self.workspace
        if workspace.retired_at:
            return format_html("retired {}", ago(workspace.retired_at))
        if workspace.is_trashed:
            return format_html("will be purged {}", ago(workspace.purge_at))
        return format_html("requested {}", ago(workspace.created_at))

    @property
    def failure(self) -> str:
        """Why it failed, "" if it did not."""
        has_failed = self.workspace.state == Workspace.State.FAILED
        return self.workspace.status_message if has_failed else ""
