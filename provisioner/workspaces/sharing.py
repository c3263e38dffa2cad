"""Who else may look at a workspace, and what else was cloned from its snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from provisioner.accounts.models import Team, User
from provisioner.accounts.system import SYSTEM_USERNAME
from provisioner.sites.models import OpenTo
from provisioner.workspaces.models import Share, Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import (
    GONE,
    siblings_of,
    siblings_visible_to,
    workspaces_shared_with,
)

SIBLINGS_SHOWN = 10
SHARED_SHOWN = 20
NAMES_SHOWN = 12


@dataclass(frozen=True, kw_only=True)
class Company:
    """What is around a workspace, for one who may see it.

    `shares` are for who may revoke them, and empty for others; `share` is the one by
    which the reader got here, None where they need none. `more` is how many further
    siblings there are: others' are counted, not named.
    """

    siblings: list[Workspace]
    more: int
    may_share: bool
    shares: list[Share]
    share: Share | None
    reads_as: str

    @property
    def may_open_to(self) -> list[tuple[str, str]]:
        """To whom its directory can be opened, with what people read."""
        return OpenTo.choices

    @property
    def is_alone(self) -> bool:
        return not self.siblings and not self.more


def company_of(user: User, workspace: Workspace) -> Company:
    """Return the siblings that a person may see, and whom it is shared with."""
    may_change = can_change_workspace(user, workspace)
    visible = siblings_visible_to(user, workspace)
    shown = list(visible.order_by("name", "pk")[:SIBLINGS_SHOWN])
    # Most are shared with nobody: the rest takes longer to plan than to ask that.
    is_shared = may_change and workspace.shares.exists()
    return Company(
        siblings=shown,
        more=siblings_of(workspace).count() - len(shown),
        may_share=may_change and workspace.state not in GONE,
        shares=shares_of(workspace) if is_shared else [],
        share=None if may_change else _share_for(user, workspace),
        reads_as=reads_as(user, workspace),
    )


def shares_of(workspace: Workspace) -> list[Share]:
    """Return whom a workspace is shared with, the first first."""
    return list(workspace.shares.select_related("person", "team", "created_by"))


def names_to_share_with(
    workspace: Workspace, *, begins: str, of_teams: bool
) -> list[str]:
    """Return the first names that begin so, of whom sharing would let in.

    The owner and their team are in already. Nothing without a letter: names are
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
    """Return the last that others share with a person."""
    if not Share.objects.reaching(user).exists():
        return []  # as for most people: the rest takes longer to plan than this
    return list(workspaces_shared_with(user)[:SHARED_SHOWN])


def reads_as(user: User, workspace: Workspace) -> str:
    """Say which of a file's permissions count for a person, as far as is known here.

    "owner", "group" or "others"; "" for an account without a uid. Other groups that
    somebody is in are known to the hosts alone.
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
