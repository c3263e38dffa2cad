"""Whom a workspace is shared with, and what else was cloned from its snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.accounts.models import Team, User
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.workspaces.models import Share, Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import (
    READS,
    siblings_of,
    siblings_visible_to,
    workspaces_shared_with,
)

SIBLINGS_SHOWN = 10
SHARED_SHOWN = 20
NAMES_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Sibling:
    """Another clone of the snapshot. `whose` is "yours" or "of bob"."""

    workspace: Workspace
    whose: str


@dataclass(frozen=True, kw_only=True)
class Company:
    """The shares and the siblings of a workspace, as its reader may see them.

    `shares` is empty unless the reader may revoke them. `share` is the reader's own,
    None if they need none. `others` counts further siblings, which belong to people
    whose names the reader may not see.
    """

    siblings: list[Sibling]
    others: str
    may_share: bool
    shares: list[Share]
    share: Share | None
    reads_as: str

    @property
    def shows_shares(self) -> bool:
        return self.may_share or bool(self.shares)


def company_of(user: User, workspace: Workspace) -> Company:
    """Return the shares and siblings of a workspace that a person may see."""
    may_change = can_change_workspace(user, workspace)
    visible = siblings_visible_to(user, workspace)
    shown = list(visible.order_by("name", "pk")[:SIBLINGS_SHOWN])
    hidden = siblings_of(workspace).count() - len(shown)
    # Most are not shared: this check is cheaper than planning the query.
    is_shared = may_change and workspace.shares.exists()
    return Company(
        siblings=[Sibling(workspace=each, whose=_whose(each, user)) for each in shown],
        others=_others(hidden, is_rest=bool(shown)),
        may_share=may_change and not workspace.is_put_away,
        shares=shares_of(workspace) if is_shared else [],
        share=None if may_change else _share_for(user, workspace),
        reads_as=reads_as(user, workspace),
    )


def _whose(workspace: Workspace, user: User) -> str:
    is_own = workspace.owner_id == user.pk
    return "yours" if is_own else f"of {workspace.owner.username}"


def _others(number: int, *, is_rest: bool) -> str:
    """Return how many siblings are not named, as a sentence, or ""."""
    if not number:
        return ""
    if is_rest:
        return f"And {number:,} more."
    return f"{number:,} clone{'s' if number > 1 else ''} of other people."


def shares_of(workspace: Workspace) -> list[Share]:
    """Return the current shares of a workspace, oldest first."""
    shares = Share.objects.current().filter(workspace=workspace)
    return list(shares.select_related("person", "team", "created_by"))


def names_to_share_with(
    workspace: Workspace, *, begins: str, of_teams: bool
) -> list[str]:
    """Return the first names that begin with a text and could be shared with.

    The owner and their team have access already. Empty without a letter: names are
    completed, not listed.
    """
    begins, owner = begins.replace("\0", ""), workspace.owner
    if not begins:
        return []
    if of_teams:
        teams = Team.objects.filter(name__istartswith=begins)
        teams = teams.exclude(members=owner)
        return list(teams.order_by("name").values_list("name", flat=True)[:NAMES_SHOWN])
    people = User.objects.filter(username__istartswith=begins, is_active=True).exclude(
        username=SYSTEM_USERNAME
    )
    people = people.exclude(pk=owner.pk)
    if owner.team_id is not None:
        people = people.exclude(team=owner.team_id)
    names = people.order_by("username").values_list("username", flat=True)
    return list(names[:NAMES_SHOWN])


def shared_with(user: User) -> list[Workspace]:
    """Return the workspaces that others shared with a person most recently."""
    if not Share.objects.reaching(user).exists():
        return []  # as for most people; cheaper than planning the query
    return list(workspaces_shared_with(user).only(*READS)[:SHARED_SHOWN])


def reads_as(user: User, workspace: Workspace) -> str:
    """Return which permission bits of the files apply to a person.

    "owner", "group" or "others"; "" for an account without a uid. Supplementary groups
    are not considered: only the hosts know them.
    """
    if user.uid is None:
        return ""
    if user.uid == workspace.uid:
        return "owner"
    return "group" if user.gid == workspace.gid else "others"


def _share_for(user: User, workspace: Workspace) -> Share | None:
    if workspace.owner_id == user.pk:
        return None
    return Share.objects.reaching(user).filter(workspace=workspace).first()
