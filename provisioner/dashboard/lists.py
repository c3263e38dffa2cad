"""Lists of workspaces with their leases: one's own, a team's, and everybody's."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from django import forms
from django.db.models import QuerySet
from django.utils import timezone

from provisioner.accounts.models import User
from provisioner.dashboard.cards import WorkspaceCard
from provisioner.engine.models import Operation
from provisioner.leases import queries as lease_queries
from provisioner.leases.actions.leases import (
    extended_end,
    require_keepable,
    workspace_extend,
    workspace_keep,
)
from provisioner.leases.forms import LeaseExtendForm, LeaseKeepForm, extension_to
from provisioner.lib import clocks
from provisioner.lib.spans import span_text
from provisioner.lib.times import exact
from provisioner.web.lists.acts import Act, unless_refused
from provisioner.web.lists.listing import Chip, Column, Listing, searched
from provisioner.workspaces.actions.retiring import (
    refused_retirements,
    workspace_retire,
)
from provisioner.workspaces.forms import OwnWorkspaceFilterForm, WorkspaceFilterForm
from provisioner.workspaces.lists import Restore
from provisioner.workspaces.models import RetireParameters, Unsubmitted, Workspace
from provisioner.workspaces.queries import (
    READS,
    workspaces_of,
    workspaces_of_team,
    workspaces_visible_to,
)


class UnsubmittedForm(forms.Form):
    """What happens to unsubmitted work, if any."""

    unsubmitted = forms.ChoiceField(
        label="Unsubmitted work",
        choices=[
            (Unsubmitted.REFUSE, "Stop and show it"),
            (Unsubmitted.RESCUE, "Rescue it: shelve opened files, archive the rest"),
        ],
        initial=Unsubmitted.REFUSE,
    )


class Retire(Act[Workspace]):
    name, label, done = "retire", "Retire", "Being retired"
    undo = "You can restore them from the trash."
    lead = (
        "Each is checked for unsubmitted work first. Its client is deleted; the client "
        "spec is kept."
    )
    is_dangerous = True
    form = UnsubmittedForm

    @cached_property
    def _policies(self) -> lease_queries.Policies:
        return lease_queries.saved_policies()

    def do(self, row: Workspace, **told: Any) -> Operation:
        return workspace_retire(by=self.by, workspace=row, **told)

    def says(self, row: Workspace, result: Operation) -> str:
        return self._sentence(row, RetireParameters.of(result).unsubmitted)

    def forecast(
        self, rows: Sequence[Workspace], told: Mapping[str, Any]
    ) -> Callable[[Workspace], str]:
        return unless_refused(
            refused_retirements(by=self.by, workspaces=rows),
            lambda row: self._sentence(row, told["unsubmitted"]),
        )

    def _sentence(self, row: Workspace, unsubmitted: str) -> str:
        if row.state == Workspace.State.RETIRING:
            return "It is already being retired."
        seconds = self._policies.of_workspace(row).trash_seconds
        if seconds and row.ready_at is not None:
            end = f"it can be restored for {span_text(seconds)}."
        else:
            end = "it is purged."
        if row.state == Workspace.State.PROVISIONING:
            return f"Provisioning stops, and {end}"
        if not row.holds_work:
            return f"It holds no work to submit: {end}"
        if unsubmitted == Unsubmitted.RESCUE:
            return f"Unsubmitted work is rescued, then {end}"
        return f"It stays if it has unsubmitted work. Otherwise {end}"


class Extend(Act[Workspace]):
    name, label, done = "extend", "Extend", "Extended"
    lead = "The new lease begins now. No lease becomes shorter."
    form = LeaseExtendForm

    def do(self, row: Workspace, **told: Any) -> Workspace:
        end = extension_to(told["span"])
        return workspace_extend(by=self.by, workspace=row, **end)

    def says(self, row: Workspace, result: Workspace) -> str:
        assert result.expires_at is not None
        return self._sentence(row, result.expires_at)

    def forecast(
        self, rows: Sequence[Workspace], told: Mapping[str, Any]
    ) -> Callable[[Workspace], str]:
        policies, now = lease_queries.policies_of(rows), clocks.database_now()
        end = extension_to(told["span"])

        def sentence(row: Workspace) -> str:
            policy = policies.of_workspace(row)
            return self._sentence(
                row, extended_end(row, policy, now, by=self.by, **end)
            )

        return sentence

    def _sentence(self, row: Workspace, ends_at: dt.datetime) -> str:
        assert row.expires_at is not None
        before, after = exact(row.expires_at), exact(ends_at)
        return f"Its lease is extended until {after}, instead of {before}."


class Keep(Act[Workspace]):
    name, label, done = "keep", "Keep", "Kept"
    lead = "They stay until somebody releases or retires them."
    form = LeaseKeepForm
    rehearsed: ClassVar = {"reason": "To be said."}

    def do(self, row: Workspace, **told: Any) -> Workspace:
        return workspace_keep(by=self.by, workspace=row, **told)

    def forecast(
        self, rows: Sequence[Workspace], told: Mapping[str, Any]
    ) -> Callable[[Workspace], str]:
        policies, now = lease_queries.policies_of(rows), clocks.database_now()

        def sentence(row: Workspace) -> str:
            require_keepable(row, policies.of_workspace(row), now, by=self.by)
            return self.says(row)

        return sentence

    def says(self, row: Workspace, result: Workspace | None = None) -> str:
        if row.keep_reason:
            return f"It is already kept, for another reason: {row.keep_reason}"
        if row.expires_at is None:
            return "It is kept. Its lease had no end before."
        exactly = exact(row.expires_at)
        return f"It is kept without an end, instead of until {exactly}."


@dataclass(frozen=True, kw_only=True)
class LeasedWorkspace:
    """A workspace with the end of its lease; `path` is "" where it is not shown."""

    workspace: Workspace
    lease: lease_queries.LeaseEnd
    path: str = ""

    @property
    def is_moving(self) -> bool:
        return self.workspace.is_moving


def _leased(user: User, workspaces: list[Workspace]) -> Sequence[LeasedWorkspace]:
    policies, now = lease_queries.policies_of(workspaces), timezone.now()
    return [
        LeasedWorkspace(
            workspace=workspace,
            lease=lease_queries.lease_end_of(
                workspace, policies.of_workspace(workspace), now
            ),
        )
        for workspace in workspaces
    ]


def _with_paths(user: User, workspaces: list[Workspace]) -> Sequence[LeasedWorkspace]:
    rows = _leased(user, workspaces)
    return [replace(row, path=str(row.workspace.path)) for row in rows]


def _cards(user: User, workspaces: list[Workspace]) -> Sequence[WorkspaceCard]:
    return [
        WorkspaceCard(workspace=row.workspace, user=user, lease=row.lease)
        for row in _leased(user, workspaces)
    ]


COLUMNS = (
    Column("id", "", "workspace.pk", "pk"),
    Column("name", "Name", "workspace.name", "name"),
    Column("state", "State", "workspace.state", "state"),
    Column("owner", "Owner", "workspace.owner.username", "owner__username"),
    Column("template", "Snapshot", "workspace.template.name", "template__name"),
    Column("change", "", "workspace.snapshot.change", goes_with="template"),
    Column("site", "Site", "workspace.site.name", "site__name"),
    Column("purpose", "", "workspace.purpose"),
    Column("path", "", lambda row: str(row.workspace.path)),
    Column(
        *("created_at", "Created", "workspace.created_at", "created_at"),
        begins_descending=True,
    ),
    Column("expires_at", "Lease ends", "lease.ends_at", "expires_at", has_gaps=True),
    Column("kept_because", "", "lease.kept_because", goes_with="expires_at"),
    Column("unique_bytes", "", "workspace.unique_bytes"),
    Column("status_message", "", "workspace.status_message", goes_with="state"),
)
_all_matching = searched(
    workspaces_visible_to, "name", "owner__username", owner="owner__username"
)


_own_matching = searched(workspaces_of, "name", "template__name")


def _matching(
    user: User, *, state: str = "", ends: str = "", **criteria: Any
) -> QuerySet[Workspace]:
    """Return visible workspaces; by default those that are not retired."""
    found = _ending(_all_matching(user, state=state, **criteria), ends)
    return found if state else found.exclude(state=Workspace.State.RETIRED)


def _own(user: User, *, ends: str = "", **criteria: Any) -> QuerySet[Workspace]:
    return _ending(_own_matching(user, **criteria), ends)


def _ending(rows: QuerySet[Workspace], ends: str) -> QuerySet[Workspace]:
    """Keep those whose lease ends within a week, if that is requested."""
    if not ends:
        return rows
    in_a_week = timezone.now() + dt.timedelta(days=7)
    return rows.filter(state=Workspace.State.READY, expires_at__lte=in_a_week)


_FAILED = Chip(label="Failed", query={"state": "failed"})
_ENDS = Chip(label="Ends this week", query={"ends": "week"})


ALL_WORKSPACES = Listing[Workspace](
    name="workspaces",
    one="workspace",
    many="workspaces",
    columns=COLUMNS,
    cells="workspaces/_cells.html",
    matching=_matching,
    choosable=workspaces_visible_to,
    usual="-created_at",
    form=WorkspaceFilterForm,
    reads=READS,
    dress=_leased,
    acts=(Extend, Keep, Retire, Restore),
    chips=(
        _FAILED,
        _ENDS,
        Chip(label="Abandoned", url_name="abandoned-list"),
        Chip(label="Mine", query={"owner": "{me}"}),
    ),
    nothing="No workspaces yet.",
)

OWN_WORKSPACES = Listing[Workspace](
    name="my-workspaces",
    one="workspace",
    many="workspaces",
    columns=COLUMNS,
    cells="workspaces/_workspace_row.html",
    is_cards=True,
    matching=_own,
    usual="-created_at",
    form=OwnWorkspaceFilterForm,
    chips=(_FAILED, _ENDS),
    reads=READS,
    dress=_cards,
    acts=(Extend, Retire),
    page_size=25,
    quiet_below=10,
)

TEAM_WORKSPACES = Listing[Workspace](
    name="team-workspaces",
    one="workspace",
    many="workspaces",
    columns=COLUMNS,
    cells="workspaces/_cells.html",
    matching=searched(workspaces_of_team, "name", "owner__username", "template__name"),
    usual="-created_at",
    reads=READS,
    dress=_with_paths,
    quiet_below=10,
)


def workspaces_of_person(account: User) -> Listing[Workspace]:
    """Return the list of an account's workspaces, for administrators."""

    def theirs(user: User) -> QuerySet[Workspace]:
        return workspaces_visible_to(user).filter(owner=account).there()

    return Listing(
        name=f"workspaces-{account.username}",
        one="workspace",
        many="workspaces",
        columns=(
            *(column for column in COLUMNS if column.name not in ("owner", "site")),
            Column(
                *("of_its_own", "Of its own", None, "unique_bytes"),
                has_gaps=True,
                is_number=True,
                begins_descending=True,
            ),
        ),
        cells="people/_workspace_cells.html",
        matching=searched(theirs, "name", "template__name"),
        usual="-created_at",
        reads=READS,
        dress=_leased,
        acts=(Extend, Keep, Retire),
        quiet_below=10,
        nothing="None.",
    )
