"""People and teams for administrators, with usage and quotas."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import (
    BigIntegerField,
    Count,
    F,
    IntegerField,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    TextChoices,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Coalesce

from provisioner.accounts import permissions
from provisioner.accounts.models import ApiToken, Session, Team, User
from provisioner.accounts.sessions import sessions_of
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.accounts.tokens import live_tokens
from provisioner.audit_log.models import Event
from provisioner.identities.absence import closes_soon_at
from provisioner.identities.queries import signs_in_by
from provisioner.lib.limits import Limit
from provisioner.lib.rows import with_words
from provisioner.limits.admission import quota_limits
from provisioner.limits.tallies import Tallies, Tally
from provisioner.workspaces.models import PUT_AWAY, Workspace

EVENTS_SHOWN = 20
SESSIONS_SHOWN = 20


class Standing(TextChoices):
    """Roles of accounts, as administrators assign them."""

    DEVELOPER = "developer", "Developer"
    ADMINISTRATOR = "administrator", "Administrator"
    MACHINE = "machine", "Machine"


_STANDING: dict[str, Q] = {
    Standing.ADMINISTRATOR: Q(is_staff=True),
    Standing.MACHINE: Q(is_staff=False, is_service=True),
    Standing.DEVELOPER: Q(is_staff=False, is_service=False),
}


def standing_of(user: User) -> Standing:
    """Return an account's role; an administrator before anything else."""
    if user.is_staff:
        return Standing.ADMINISTRATOR
    return Standing.MACHINE if user.is_service else Standing.DEVELOPER


class Issue(TextChoices):
    """Something about an account that administrators may have to fix."""

    OVER_QUOTA = "over_quota", "Above its quota"
    NO_MAIL = "no_mail", "No mail address"


_ISSUE: dict[str, Q] = {
    Issue.OVER_QUOTA: Q(workspaces_number__gt=F("max_workspaces"))
    | Q(unique_bytes__gt=F("max_unique_bytes")),
    Issue.NO_MAIL: Q(email=""),
}


def people_matching(
    user: User,
    *,
    text: str = "",
    role: str = "",
    team: Team | None = None,
    issue: str = "",
    gone: str = "",
) -> QuerySet[User]:
    """Return accounts with `workspaces_number` and `unique_bytes`, counted as for
    quotas.

    With `gone`, only closed accounts.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    people = User.objects.exclude(username=SYSTEM_USERNAME).filter(is_active=not gone)
    people = with_words(people, text, "username", "p4_user", "email", "team__name")
    if role:
        people = people.filter(_STANDING[role])
    if team is not None:
        people = people.filter(team=team)
    people = people.select_related("team").annotate(**_held_by())
    return people.filter(_ISSUE[issue]) if issue else people


def teams_matching(user: User, *, text: str = "") -> QuerySet[Team]:
    """Return teams with `members_number`.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    active = Q(members__is_active=True)
    return with_words(Team.objects.all(), text, "name").annotate(
        members_number=Count("members", filter=active)
    )


@dataclass(frozen=True, kw_only=True)
class TeamUse:
    """A team with its use of its quota."""

    team: Team
    members_number: int
    workspaces_number: int
    unique_bytes: int


def teams_with_use(user: User, teams: Sequence[Any]) -> list[TeamUse]:
    """Return the use of each team, in one query for all."""
    held = Tallies().by_team
    return [
        TeamUse(
            team=team,
            members_number=team.members_number,
            workspaces_number=held.get(team.pk, Tally()).held,
            unique_bytes=held.get(team.pk, Tally()).held_bytes,
        )
        for team in teams
    ]


def _held_by() -> dict[str, Combinable]:
    """Return what counts against a person's quota: workspaces and bytes."""
    held = (
        Workspace.objects.filter(owner=OuterRef("pk"), is_pooled=False)
        .there()
        .order_by()
        .values("owner")
    )
    number = held.annotate(n=Count("pk", filter=~Q(state__in=PUT_AWAY))).values("n")
    taken = held.annotate(n=Sum("unique_bytes")).values("n")
    return {
        "workspaces_number": Coalesce(Subquery(number, output_field=IntegerField()), 0),
        "unique_bytes": Coalesce(Subquery(taken, output_field=BigIntegerField()), 0),
    }


@dataclass(frozen=True, kw_only=True)
class Person:
    """An account with its quotas and recent activity.

    `closes_at` is when it is closed for absence, None if that is not soon.
    """

    account: User
    standing: Standing
    signs_in_by: str
    closes_at: dt.datetime | None
    quotas: list[Limit]
    tokens: list[ApiToken]
    sessions: list[Session]
    events: list[Event]
    last_event: Event | None


def find_person(user: User, *, pk: int) -> Person | None:
    """Return an account with its quotas and activity, or None.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(user))
    account = User.objects.select_related("team").filter(pk=pk).first()
    if account is None:
        return None
    events: Any = Event.objects.filter(actor=account).select_related(
        "workspace", "template"
    )
    lately = list(events.defer("data")[:EVENTS_SHOWN])
    return Person(
        account=account,
        standing=standing_of(account),
        signs_in_by=signs_in_by(account),
        closes_at=closes_soon_at(account),
        quotas=quota_limits(account),
        tokens=list(live_tokens().filter(user=account)),
        sessions=list(sessions_of(account)[:SESSIONS_SHOWN]),
        events=lately,
        last_event=lately[0] if lately else None,
    )
