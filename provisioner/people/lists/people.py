"""Lists of people and of teams."""

from __future__ import annotations

from typing import Any

from provisioner.accounts.models import Team, User
from provisioner.people.actions.accounts import account_update
from provisioner.people.forms.people import (
    PeopleFilterForm,
    QuotaChangeForm,
    QuotaForm,
    RoleChangeForm,
    TeamChangeForm,
)
from provisioner.people.queries import (
    Issue,
    Standing,
    people_matching,
    standing_of,
    teams_matching,
    teams_with_use,
)
from provisioner.web.lists.acts import Act
from provisioner.web.lists.listing import Chip, Column, Listing


class PutIntoTeam(Act[User]):
    name, label, done = "team", "Set team", "Changed"
    asks = "Set team of"
    lead = "Team members see each other's workspaces and share a quota."
    form = TeamChangeForm

    def do(self, row: User, **told: Any) -> User:
        return account_update(by=self.by, account=row, team=told["team"])

    def says(self, row: User, result: User) -> str:
        if row.team_id == result.team_id:
            return "Nothing changes."
        before = f"the team {row.team}" if row.team else "no team"
        after = f"the team {result.team}" if result.team else "no team"
        return f"From {before} to {after}."


class SetQuota(Act[User]):
    name, label, done = "quota", "Set quota", "Changed"
    asks = "Set quota for"
    lead = "The most that each may have at a time. What exceeds it stays."
    form = QuotaChangeForm

    def do(self, row: User, **told: Any) -> User:
        return account_update(by=self.by, account=row, **told)

    def says(self, row: User, result: User) -> str:
        before, after = QuotaForm.in_words(row), QuotaForm.in_words(result)
        if before == after:
            return "Nothing changes."
        return f"{after} instead of {before.lower()}."


class SetRole(Act[User]):
    name, label, done = "role", "Set role", "Changed"
    asks = "Set role of"
    lead = "Administrators manage everything. Machines are accounts such as CI."
    form = RoleChangeForm

    def do(self, row: User, **told: Any) -> User:
        return account_update(by=self.by, account=row, standing=told["standing"])

    def says(self, row: User, result: User) -> str:
        before, after = standing_of(row), standing_of(result)
        if before == after:
            return "Nothing changes."
        return f"From {before.label.lower()} to {after.label.lower()}."


PEOPLE = Listing[User](
    name="people",
    one="account",
    many="accounts",
    columns=(
        Column("name", "Name", "username", "username"),
        Column("role", "Role", lambda user: str(standing_of(user))),
        Column(
            *("team", "Team", lambda user: user.team.name if user.team else ""),
            *("team__name", True),
        ),
        Column("p4_user", "", "perforce_name"),
        Column("email", "", "email"),
        Column("uid", "uid, gid", "uid", "uid", has_gaps=True),
        Column("gid", "", "gid", goes_with="uid"),
        Column(
            *("workspaces", "Workspaces", "workspaces_number", "workspaces_number"),
            is_number=True,
            begins_descending=True,
        ),
        Column("max_workspaces", "", "max_workspaces", goes_with="workspaces"),
        Column(
            *("unique_bytes", "Of their own", "unique_bytes", "unique_bytes"),
            is_number=True,
            begins_descending=True,
        ),
        Column("max_unique_bytes", "", "max_unique_bytes", goes_with="unique_bytes"),
        Column(
            *("signed_in", "Signed in", "last_login", "last_login", True),
            begins_descending=True,
        ),
    ),
    cells="people/_cells.html",
    matching=people_matching,
    usual="name",
    form=PeopleFilterForm,
    reads=(
        *("username", "p4_user", "email", "uid", "gid", "last_login", "team__name"),
        *("is_staff", "is_service", "max_workspaces", "max_unique_bytes"),
    ),
    acts=(PutIntoTeam, SetQuota, SetRole),
    chips=(
        Chip(label="Administrators", query={"role": Standing.ADMINISTRATOR}),
        Chip(label="Over quota", query={"issue": Issue.OVER_QUOTA}),
        Chip(label="No mail address", query={"issue": Issue.NO_MAIL}),
        Chip(label="Closed", query={"gone": "1"}),
    ),
)

TEAMS = Listing[Team](
    name="teams",
    one="team",
    many="teams",
    columns=(
        Column("name", "Name", "team.name", "name"),
        Column(
            *("members", "Members", "members_number", "members_number"),
            is_number=True,
            begins_descending=True,
        ),
        Column("workspaces", "Workspaces", "workspaces_number", is_number=True),
        Column("max_workspaces", "", "team.max_workspaces", goes_with="workspaces"),
        Column("unique_bytes", "Of their own", "unique_bytes", is_number=True),
        Column(
            *("max_unique_bytes", "", "team.max_unique_bytes"),
            goes_with="unique_bytes",
        ),
        Column("actions", "Actions", None, is_label_spoken=True),
    ),
    cells="people/_team_cells.html",
    matching=teams_matching,
    dress=teams_with_use,
    usual="name",
    quiet_below=10,
    nothing="No team yet.",
)
