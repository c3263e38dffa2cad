"""Lists of lease policies, and of workspaces that look abandoned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.urls import reverse

from provisioner.accounts.mails import why_no_mail_to
from provisioner.accounts.models import User
from provisioner.leases.abandoned import (
    abandoned_matching,
    shown_abandoned,
)
from provisioner.leases.actions.abandoned import (
    Outcome,
    workspace_ask_owner,
    workspace_retire_abandoned,
)
from provisioner.leases.actions.policies import PolicyPreview, lease_policy_remove
from provisioner.leases.forms import AbandonedFilterForm
from provisioner.leases.models import LeasePolicy
from provisioner.web.bulk import RowOutcome
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Column, Listing, searched
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.queries import workspaces_visible_to


class Remove(Act[LeasePolicy]):
    name, label, done = "remove", "Remove", "Removed"
    lead = "The general policy of the purpose then applies to the template."
    is_dangerous = True

    def do(self, row: LeasePolicy, **told: Any) -> PolicyPreview:
        return lease_policy_remove(by=self.by, row=row)

    def says(self, row: LeasePolicy, result: PolicyPreview) -> str:
        if not result.affected:
            return "No workspace is affected."
        number = len(result.affected)
        affected = "workspace is" if number == 1 else "workspaces are"
        return f"{number} {affected} affected, {result.moving} deadlines move."


def _of_templates(user: User) -> QuerySet[LeasePolicy]:
    return LeasePolicy.objects.filter(template__isnull=False).select_related("template")


TEMPLATE_POLICIES = Listing[LeasePolicy](
    name="lease-policies",
    one="policy",
    many="policies",
    columns=(
        Column("template", "Template", "template.name", "template__name"),
        Column("purpose", "Purpose", "purpose", "purpose"),
        Column(
            *("default_seconds", "Lease", "default_seconds", "default_seconds"),
            has_gaps=True,
        ),
        Column(
            *("maximum_seconds", "Longest", "maximum_seconds", "maximum_seconds"),
            has_gaps=True,
        ),
        Column(
            *("warn_seconds", "Mails before"),
            lambda row: " ".join(map(str, row.warn_seconds)),
        ),
        Column("trash_seconds", "Trash", "trash_seconds", "trash_seconds"),
        Column("actions", "Actions", None, is_label_spoken=True),
    ),
    cells="leases/_template_policy_cells.html",
    matching=searched(_of_templates, "template__name", "purpose"),
    usual="template",
    acts=(Remove,),
    quiet_below=10,
    nothing="No template has a policy of its own.",
)


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
        if why_not := why_no_mail_to(row.owner):
            return f"{result.sentence} Nobody is notified. {why_not}"
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
