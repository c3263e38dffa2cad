"""Accounts and teams: what people choose, and what administrators give them.

Each change enters the audit log with its values before and after.
"""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import Team, User
from provisioner.accounts.zones import find_zone
from provisioner.lib.refusals import InvalidRequest, NotAllowed
from provisioner.people.queries import Standing, standing_of
from provisioner.people.refusals import NotYourself, TeamExists

# What a quota of bytes or of workspaces may be at most: what the columns hold.
MOST_WORKSPACES = 2**31 - 1
MOST_BYTES = 2**63 - 1


def account_choose_zone(*, by: User, time_zone: str) -> None:
    """Show a person times in a zone, in pages and mails; "": as their browser says.

    Raises: InvalidRequest.
    """
    if time_zone and find_zone(time_zone) is None:
        raise InvalidRequest(f"There is no time zone “{time_zone}”.")
    by.time_zone = time_zone
    by.save(update_fields=["time_zone"])


def account_update(*, by: User, account: User, **changes: Any) -> User:
    """Change what is given of team, max_workspaces, max_unique_bytes and standing.

    Nobody changes what they are themselves, so an administrator always remains. One
    who may keep rows by hand gives that with the standing of an administrator, too.

    Raises: NotAllowed, NotYourself, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    _check_quota(changes)
    with transaction.atomic():
        row = User.objects.select_for_update(no_key=True).get(pk=account.pk)
        standing = changes.pop("standing", None)
        if standing is not None and standing != standing_of(row):
            _give_standing(row, Standing(standing), by=by)
        for name, value in changes.items():
            setattr(row, name, value)
        row.save()
    return row


def team_create(*, by: User, name: str, **quota: int | None) -> Team:
    """Make a team, with max_workspaces and max_unique_bytes where it is bounded.

    Raises: NotAllowed, InvalidRequest, TeamExists.
    """
    permissions.require(permissions.can_administer(by))
    return _saved_team(Team(), {"name": name, **quota})


def team_update(*, by: User, team: Team, **changes: Any) -> Team:
    """Change what is given of name, max_workspaces and max_unique_bytes.

    Raises: NotAllowed, InvalidRequest, TeamExists.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        row = Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        return _saved_team(row, changes)


def _saved_team(team: Team, changes: dict[str, Any]) -> Team:
    _check_quota(changes)
    if "name" in changes:
        changes["name"] = " ".join(changes["name"].split())
    for name, value in changes.items():
        setattr(team, name, value)
    try:
        team.full_clean(validate_unique=False)
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest(f"{field}: {messages[0]}") from error
    if Team.objects.filter(name=team.name).exclude(pk=team.pk).exists():
        raise TeamExists(name=team.name)
    team.save()
    return team


def _give_standing(row: User, standing: Standing, *, by: User) -> None:
    if row.pk == by.pk:
        raise NotYourself
    if row.is_superuser and not by.is_superuser:
        raise NotAllowed(
            f"{row.get_username()} keeps rows by hand, which you may not: ask one who "
            "may."
        )
    is_administrator = standing == Standing.ADMINISTRATOR
    row.is_staff = is_administrator
    row.is_superuser = is_administrator and by.is_superuser
    row.is_service = standing == Standing.MACHINE


def _check_quota(changes: dict[str, Any]) -> None:
    """Refuse a quota that no column holds.

    Raises: InvalidRequest.
    """
    for name, most in (
        ("max_workspaces", MOST_WORKSPACES),
        ("max_unique_bytes", MOST_BYTES),
    ):
        allowed = changes.get(name)
        if allowed is not None and not 0 <= allowed <= most:
            raise InvalidRequest(f"A quota is from 0 to {most:,}.")
