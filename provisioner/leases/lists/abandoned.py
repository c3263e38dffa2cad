"""The list of workspaces that look abandoned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from provisioner.leases.abandoned import (
    abandoned_matching,
    shown_abandoned,
)
from provisioner.leases.actions.abandoned import (
    Outcome,
    workspace_ask_owner,
    workspace_retire_abandoned,
)
from provisioner.leases.forms import AbandonedFilterForm
from provisioner.web.bulk import RowOutcome
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_visible_to


class AskOwner(Act[Workspace]):
    name, label, done = "notify", "Ask their owners", "Asked about"
    asks = "Ask the owners of"
    lead = "Each owner gets a mail with the reasons, at most once a day."

    def do(self, row: Workspace, **told: Any) -> Outcome:
        return workspace_ask_owner(by=self.by, workspace=row)

    def says(self, row: Workspace, result: Outcome) -> str:
        return result.sentence


class RetireAbandoned(Act[Workspace]):
    name, label, done = "retire", "Retire", "Being retired"
    lead = (
        "Each owner gets a mail with the location of rescued work and the last day "
        "to restore."
    )
    is_dangerous = True

    def do(self, row: Workspace, **told: Any) -> Outcome:
        return workspace_retire_abandoned(by=self.by, workspace=row)

    def says(self, row: Workspace, result: Outcome) -> str:
        return result.sentence

    def leads_to(self, outcomes: Sequence[RowOutcome[Workspace]]) -> str:
        named = ",".join(str(one.row.pk) for one in outcomes)
        return f"{reverse('abandoned-progress')}?{urlencode({'workspaces': named})}"


ABANDONED = Listing[Workspace](
    name="abandoned",
    one="workspace",
    many="workspaces",
    columns=(
        Column("id", "", "workspace.pk"),
        Column("name", "Workspace", "workspace.name", "name"),
        Column("owner", "Owner", "workspace.owner.username", "owner__username"),
        Column("template", "", "workspace.template.name"),
        Column("idle_since", "Idle", "abandonment.idle_since", "idle_since"),
        Column(
            *("unique_bytes", "Frees", "frees_bytes", "unique_bytes"),
            has_gaps=True,
            is_number=True,
            begins_descending=True,
        ),
        Column(
            *("expires_at", "Lease ends", "deadline.ends_at", "expires_at"),
            has_gaps=True,
        ),
        Column("kept_because", "", "deadline.kept_because"),
        Column("notified_at", "Owner asked", "notified_at"),
        Column("why", "", "abandonment.sentence"),
    ),
    cells="leases/_abandoned_cells.html",
    matching=abandoned_matching,
    # One that was used meanwhile is refused with the reason, not left out silently.
    choosable=workspaces_visible_to,
    reads=(
        *("name", "remote_name", "client_suffix", "tag", "purpose", "state"),
        *("created_at", "ready_at", "failed_at", "expires_at"),
        *("keep_reason", "unique_bytes", "activity", "activity_seen_at"),
        *("idle_since", "used_at"),
        *("heartbeat_seconds", "heartbeat_at", "trashed_at", "purge_at"),
        *("owner__username", "owner__is_service", "template__name"),
        *("snapshot__change", "snapshot__name", "site__perforce_server__name"),
    ),
    usual="idle_since",
    form=AbandonedFilterForm,
    dress=lambda user, some: shown_abandoned(some),
    acts=(AskOwner, RetireAbandoned),
    page_size=25,
    is_read_whole=True,
)
