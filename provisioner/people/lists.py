"""Lists of people, of teams, and of API tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from provisioner.accounts import origin
from provisioner.accounts.models import ApiToken, Session, Team, User
from provisioner.accounts.sessions import sessions_of
from provisioner.accounts.tokens import tokens_of, tokens_visible_to
from provisioner.catalog.models import Template
from provisioner.lib.spans import span_text
from provisioner.lib.user_agents import browser_of
from provisioner.people.actions.accounts import account_update
from provisioner.people.actions.sessions import session_end
from provisioner.people.actions.tokens import api_token_revoke
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
from provisioner.web.lists.listing import Chip, Column, Listing, searched


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
        return f"{after} instead of {before[0].lower()}{before[1:]}."


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


class Revoke(Act[ApiToken]):
    name, label, done = "revoke", "Revoke", "Revoked"
    lead = "Workspaces that were created with them stay."
    is_dangerous = True

    def do(self, row: ApiToken, **told: Any) -> None:
        api_token_revoke(by=self.by, token=row)

    def says(self, row: ApiToken, result: None) -> str:
        return f"Requests of {row.user.username} with it are refused now."


@dataclass(frozen=True, kw_only=True)
class ShownToken:
    """A token with the names of its templates, and whether to show its owner."""

    token: ApiToken
    templates: list[str]
    has_owner: bool

    @property
    def bounds(self) -> str:
        """Its scope, in a line."""
        token = self.token
        if not token.is_scoped:
            return "everything its owner may do"
        if token.reads_mounts:
            return "only reading mounts"
        parts = [
            ", ".join(self.templates) or "all templates",
            ", ".join(token.purposes or ()) or "all purposes",
        ]
        if token.max_lease_seconds:
            parts.append(f"leases up to {span_text(token.max_lease_seconds)}")
        if most := token.max_workspaces:
            parts.append(f"{most} workspace{'s' if most > 1 else ''} at a time")
        return "; ".join(parts)


def shown_tokens(
    found: Iterable[ApiToken], *, has_owner: bool = False
) -> list[ShownToken]:
    """Return tokens with the names of their templates, in one more query."""
    tokens = list(found)
    wanted = {pk for token in tokens for pk in token.template_ids or ()}
    names = dict(Template.with_deleted.filter(pk__in=wanted).values_list("pk", "name"))
    return [
        ShownToken(
            token=token,
            templates=[names[pk] for pk in token.template_ids or () if pk in names],
            has_owner=has_owner,
        )
        for token in tokens
    ]


_NAME = Column("name", "Token", "token.name", "name")
_REST = (
    Column("prefix", "", "token.token_key"),
    Column("bounds", "For", "bounds"),
    Column(
        *("last_used_at", "Last used", "token.last_used_at", "last_used_at"),
        has_gaps=True,
        begins_descending=True,
    ),
    Column("created_at", "", "token.created", "created"),
    Column("expires_at", "Until", "token.expiry", "expiry"),
    Column("actions", "Actions", None, is_label_spoken=True),
)

TOKENS = Listing[ApiToken](
    name="tokens",
    one="token",
    many="tokens",
    columns=(_NAME, *_REST),
    cells="people/_token_cells.html",
    matching=searched(tokens_of, "name", "token_key"),
    usual="-created_at",
    dress=lambda user, tokens: shown_tokens(tokens),
    acts=(Revoke,),
    key="token_key",
    quiet_below=10,
    nothing="You have no tokens.",
)

EVERYBODYS_TOKENS = Listing[ApiToken](
    name="everybodys-tokens",
    one="token",
    many="tokens",
    columns=(
        _NAME,
        Column("owner", "Whose", "token.user.username", "user__username"),
        *_REST,
    ),
    cells="people/_token_cells.html",
    matching=searched(tokens_visible_to, "name", "token_key", "user__username"),
    usual="owner",
    dress=lambda user, tokens: shown_tokens(tokens, has_owner=True),
    acts=(Revoke,),
    key="token_key",
    nothing="There are no tokens.",
)


class End(Act[Session]):
    name, label, done = "end", "End", "Ended"
    lead = "Whoever uses them has to sign in again."
    is_dangerous = True

    def do(self, row: Session, **told: Any) -> None:
        session_end(by=self.by, session=row)

    def says(self, row: Session, result: None) -> str:
        return "Its browser has to sign in again."


@dataclass(frozen=True, kw_only=True)
class ShownSession:
    """A session, and whether it is the one that asks."""

    session: Session
    is_this: bool

    @property
    def browser(self) -> str:
        return browser_of(self.session.user_agent)


def shown_sessions(sessions: Iterable[Session]) -> list[ShownSession]:
    """Return sessions as they are shown to whoever sent the current request."""
    via = origin.current().via
    return [
        ShownSession(session=session, is_this=str(session) == via)
        for session in sessions
    ]


SESSIONS = Listing[Session](
    name="sessions",
    one="session",
    many="sessions",
    columns=(
        Column("browser", "Browser", "browser", "user_agent"),
        Column("name", "", "session.name"),
        Column("address", "Address", "session.ip", "ip", has_gaps=True),
        Column(
            *("last_used_at", "Last used", "session.last_used_at", "last_used_at"),
            begins_descending=True,
        ),
        Column(
            *("signed_in_at", "Signed in", "session.signed_in_at", "signed_in_at"),
            begins_descending=True,
        ),
        Column("actions", "Actions", None, is_label_spoken=True),
    ),
    cells="people/_session_cells.html",
    matching=searched(sessions_of, "user_agent", "name"),
    usual="-last_used_at",
    dress=lambda user, sessions: shown_sessions(sessions),
    acts=(End,),
    key="name",
    quiet_below=10,
    nothing="You have no sessions.",
)
