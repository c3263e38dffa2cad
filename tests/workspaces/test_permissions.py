"""Who may do what, as a table."""

from __future__ import annotations

import pytest

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.lib.refusals import NotAllowed
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.permissions import can_change_workspace
from provisioner.workspaces.queries import workspaces_visible_to
from tests.support.factories import UserFactory


@pytest.fixture
def people(alice: User, carol: User, admin: User, ci: User) -> dict[str, User]:
    return {
        "owner": alice,
        "stranger": carol,
        "machine": ci,
        "administrator": admin,
        "administrator who left": UserFactory.create(is_staff=True, is_active=False),
        "superuser without staff": UserFactory.create(is_superuser=True),
    }


@pytest.mark.parametrize(
    ("who", "may_see", "may_change", "may_manage_templates"),
    [
        ("owner", True, True, False),
        ("stranger", False, False, False),
        ("machine", False, False, False),
        ("administrator", True, True, True),
        ("administrator who left", False, False, False),
        ("superuser without staff", False, False, False),
    ],
)
def test_permissions_are_as_the_table_says(
    who: str,
    may_see: bool,
    may_change: bool,
    may_manage_templates: bool,
    people: dict[str, User],
    workspace: Workspace,
) -> None:
    user = people[who]

    if user.is_active:
        assert (workspace in workspaces_visible_to(user)) == may_see
    assert can_change_workspace(user, workspace) == may_change
    assert permissions.can_manage_templates(user) == may_manage_templates


def test_what_is_not_allowed_is_refused() -> None:
    permissions.require(True)
    with pytest.raises(NotAllowed):
        permissions.require(False)
