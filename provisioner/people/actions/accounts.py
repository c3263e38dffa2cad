"""Accounts and teams: what people choose, and what administrators assign.

Each change enters the audit log with its values before and after.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth import password_validation
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models.functions import Now
from django.utils.crypto import get_random_string

from provisioner.accounts import permissions
from provisioner.accounts.models import Team, User
from provisioner.accounts.sessions import sessions_end
from provisioner.accounts.zones import find_zone
from provisioner.identities.models import Identity
from provisioner.lib.refusals import InvalidRequest, NotAllowed
from provisioner.people.queries import Standing, standing_of
from provisioner.people.refusals import AccountExists, NotYourself, TeamExists

# What a quota of bytes or of workspaces may be at most: what the columns hold.
MOST_WORKSPACES = 2**31 - 1
MOST_BYTES = 2**63 - 1
# Who sets these of an account can be it: by mail, in Perforce, or on the file system.
IDENTITY = frozenset({"email", "p4_user", "uid", "gid"})


def account_choose_zone(*, by: User, time_zone: str) -> None:
    """Set the time zone of a person's pages and mails; "": the browser's.

    Raises: InvalidRequest.
    """
    if time_zone and find_zone(time_zone) is None:
        raise InvalidRequest(f"There is no time zone “{time_zone}”.")
    by.time_zone = time_zone
    by.save(update_fields=["time_zone"])


def account_update(*, by: User, account: User, **changes: Any) -> User:
    """Change the given fields of an account.

    They are email, p4_user, uid, gid, team, max_workspaces, max_unique_bytes and
    standing. Nobody changes their own standing, so an administrator always remains.
    Only a superuser gives or takes that of an administrator. Existing workspaces keep
    their uid.

    Raises: NotAllowed, NotYourself, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    _check_quota(changes)
    with transaction.atomic():
        row = User.objects.select_for_update(no_key=True).get(pk=account.pk)
        if any(
            getattr(row, name) != changes.get(name) for name in IDENTITY & {*changes}
        ):
            _require_reach(row, by=by)
        standing = changes.pop("standing", None)
        if standing is not None and standing != standing_of(row):
            _give_standing(row, Standing(standing), by=by)
        _write(row, changes)
    return row


def account_create(*, by: User, username: str, password: str, **given: Any) -> User:
    """Create an account with the fields of `account_update`.

    Without a password nobody can sign in with one until it is set.

    Raises: NotAllowed, InvalidRequest, AccountExists.
    """
    permissions.require(permissions.can_administer(by))
    _check_quota(given)
    username = User.normalize_username(username.strip())
    if User.objects.filter(username__iexact=username).exists():
        raise AccountExists(name=username)
    row = User(username=username)
    with transaction.atomic():
        _give_standing(row, Standing(given.pop("standing")), by=by)
        if password:
            check_password(password, row)
        row.set_password(password or get_random_string(50))
        _write(row, given)
    return row


def account_close(*, by: User, account: User) -> None:
    """Close an account and end its sessions. Its tokens wait until it is reopened.

    Its workspaces stay until their leases end. The directory does not reopen it.

    Raises: NotAllowed, NotYourself.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        row = locked_account(account, by=by)
        if row.pk == by.pk:
            raise NotYourself
        row.is_active = False
        row.save(update_fields=["is_active"])
        Identity.objects.filter(account=row).update(closed_at=None)
        sessions_end(row)


def account_reopen(*, by: User, account: User) -> None:
    """Reopen an account. Days of absence are counted from now.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        row = locked_account(account, by=by)
        row.is_active = True
        row.save(update_fields=["is_active"])
        Identity.objects.filter(account=row).update(closed_at=None, vouched_at=Now())


def locked_account(account: User, *, by: User) -> User:
    """Return the account, locked, if `by` may administer it.

    Raises: NotAllowed.
    """
    row = User.objects.select_for_update(no_key=True).get(pk=account.pk)
    _require_reach(row, by=by)
    return row


def check_password(password: str, account: User) -> None:
    """Refuse a password that is easily guessed.

    Raises: InvalidRequest.
    """
    try:
        password_validation.validate_password(password, account)
    except ValidationError as error:
        raise InvalidRequest.at("password", " ".join(error.messages)) from error


def _write(row: User, values: dict[str, Any]) -> None:
    """Save a row that passes its model's validation.

    Raises: InvalidRequest.
    """
    for name, value in values.items():
        setattr(row, name, value)
    if (row.uid is None) != (row.gid is None):
        missing = "uid" if row.uid is None else "gid"
        raise InvalidRequest.at(missing, "Give both uid and gid, or neither.")
    try:
        row.full_clean(validate_constraints=False)
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest.at(field, messages[0]) from error
    row.save()


def team_create(*, by: User, name: str, **quota: int | None) -> Team:
    """Create a team, with an optional quota (max_workspaces, max_unique_bytes).

    Raises: NotAllowed, InvalidRequest, TeamExists.
    """
    permissions.require(permissions.can_administer(by))
    return _saved_team(Team(), {"name": name, **quota})


def team_update(*, by: User, team: Team, **changes: Any) -> Team:
    """Change name, max_workspaces or max_unique_bytes, if given.

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
        raise InvalidRequest.at(field, messages[0]) from error
    if Team.objects.filter(name=team.name).exclude(pk=team.pk).exists():
        raise TeamExists(name=team.name)
    team.save()
    return team


def _give_standing(row: User, standing: Standing, *, by: User) -> None:
    if row.pk == by.pk:
        raise NotYourself
    _require_reach(row, by=by)
    is_administrator = standing == Standing.ADMINISTRATOR
    row.is_staff = is_administrator
    row.is_superuser = is_administrator and by.is_superuser
    row.is_service = standing == Standing.MACHINE


def _require_reach(row: User, *, by: User) -> None:
    """Refuse to hand out more rights than the person has.

    Raises: NotAllowed.
    """
    if row.is_superuser and not by.is_superuser:
        raise NotAllowed(
            f"{row.get_username()} may edit database rows. Only an administrator with "
            "that right can change this account."
        )


def _check_quota(changes: dict[str, Any]) -> None:
    """Refuse a quota that its column cannot hold.

    Raises: InvalidRequest.
    """
    for name, most in (
        ("max_workspaces", MOST_WORKSPACES),
        ("max_unique_bytes", MOST_BYTES),
    ):
        allowed = changes.get(name)
        if allowed is not None and not 0 <= allowed <= most:
            raise InvalidRequest.at(name, f"A quota is from 0 to {most:,}.")
