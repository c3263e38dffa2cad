"""Audit events from signals: sign-ins, tokens, and rows that administrators edit.

This records all changes, by the admin site, actions and commands. Bulk updates send no
signals, so our code does not use them on these rows. Values that may be secret are left
out.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib.auth import BACKEND_SESSION_KEY
from django.contrib.auth.models import Group
from django.contrib.auth.signals import (
    user_logged_in,
    user_logged_out,
    user_login_failed,
)
from django.db.models import Model
from django.db.models.signals import m2m_changed, post_delete, post_save, pre_save
from django.dispatch import receiver
from django.http import HttpRequest

from provisioner.accounts import origin
from provisioner.accounts.models import ApiToken, Team, User
from provisioner.accounts.tokens import has_expired
from provisioner.audit_log.actions import kind_of, record_event
from provisioner.audit_log.changes import changes_between
from provisioner.audit_log.models import Event
from provisioner.dashboard.setup import setup_for
from provisioner.leases.models import LeasePolicy
from provisioner.lib import clocks
from provisioner.pools.models import Pool
from provisioner.sites.events import asks_where_to_go_on
from provisioner.sites.models import PerforceServer, Site

# Beyond this many failures a minute from one address, only the first ones are kept:
# whoever tries passwords must not fill the database.
FAILURES_A_MINUTE = 30

BY_HAND: tuple[type[Model], ...] = (
    Site,
    PerforceServer,
    LeasePolicy,
    Pool,
    Team,
    User,
)
SECRET = frozenset({"password"})
# Written by signing in, not by a person.
NOT_A_CHANGE = frozenset({"last_login"})


@receiver(asks_where_to_go_on)
def go_on_with_setup(user: User, **kwargs: Any) -> str | None:
    """Redirect to the setup while a step is missing."""
    return None if setup_for(user) is None else "setup"


def watch() -> None:
    """Connect the receivers."""
    user_logged_in.connect(_signed_in, dispatch_uid="audit_log")
    user_logged_out.connect(_signed_out, dispatch_uid="audit_log")
    user_login_failed.connect(_sign_in_failed, dispatch_uid="audit_log")
    post_save.connect(_token_made, sender=ApiToken, dispatch_uid="audit_log")
    post_delete.connect(_token_revoked, sender=ApiToken, dispatch_uid="audit_log")
    for model in BY_HAND:
        pre_save.connect(_remember, sender=model, dispatch_uid="audit_log")
        post_save.connect(_saved, sender=model, dispatch_uid="audit_log")
        post_delete.connect(_deleted, sender=model, dispatch_uid="audit_log")
    for through in (User.groups.through, User.user_permissions.through):
        m2m_changed.connect(_rights_changed, sender=through, dispatch_uid="audit_log")


def _signed_in(sender: Any, user: User, request: HttpRequest, **kwargs: Any) -> None:
    means = origin.means_of(request.session[BACKEND_SESSION_KEY])
    with origin.coming_by(origin.current().via or means):
        record_event(user, kind="signed_in", message="Signed in.", actor=user)


def _signed_out(sender: Any, user: User | None, **kwargs: Any) -> None:
    if user is not None:
        record_event(user, kind="signed_out", message="Signed out.", actor=user)


def _sign_in_failed(sender: Any, credentials: dict[str, Any], **kwargs: Any) -> None:
    """Record a failed sign-in, with the name only if it is an account's.

    People type passwords into the field for the name.
    """
    here = origin.current()
    lately = clocks.database_now() - dt.timedelta(minutes=1)
    failures = Event.objects.filter(kind="sign_in_failed", at__gt=lately, ip=here.ip)
    if failures.count() >= FAILURES_A_MINUTE:
        return
    typed = str(credentials.get(User.USERNAME_FIELD) or "")
    account = None if "\0" in typed else User.objects.filter(username=typed).first()
    record_event(
        account,
        kind="sign_in_failed",
        message="Signing in failed."
        if account
        else "Signing in failed: there is no such account.",
    )


def _token_made(instance: ApiToken, created: bool, **kwargs: Any) -> None:
    if created:
        named = f" ({instance.name})" if instance.name else ""
        record_event(
            instance.user,
            kind="token_made",
            message=f"Made the API token {instance.token_key}{named}.",
            data={"prefix": instance.token_key, "name": instance.name},
        )


def _token_revoked(instance: ApiToken, **kwargs: Any) -> None:
    is_late = has_expired(instance)
    record_event(
        instance.user,
        kind="token_expired" if is_late else "token_revoked",
        message=f"The API token {instance.token_key} "
        f"{'expired' if is_late else 'was revoked'}.",
        data={"prefix": instance.token_key, "name": instance.name},
    )


def _remember(
    sender: type[Model], instance: Any, raw: bool, update_fields: Any, **kwargs: Any
) -> None:
    """Read the row before it is overwritten."""
    instance._log_before = None
    if raw or (update_fields is not None and set(update_fields) <= NOT_A_CHANGE):
        return
    if instance.pk is not None:
        before = sender._default_manager.filter(pk=instance.pk).first()
        instance._log_before = _values(before) if before is not None else None


def _saved(
    instance: Any, created: bool, raw: bool, update_fields: Any, **kwargs: Any
) -> None:
    before = instance.__dict__.pop("_log_before", None)
    if raw:
        return
    what = kind_of(instance)
    if created:
        record_event(
            instance, kind=f"{what}_made", message=f"Made the {what.label.lower()}."
        )
        return
    if before is None:
        return
    # Fields that were not written stay as they were, whatever the object holds.
    after = {
        name: value
        for name, value in _values(instance).items()
        if update_fields is None or name in update_fields
    }
    if data := changes_between(before, after, secret=SECRET):
        record_event(
            instance,
            kind=f"{what}_changed",
            message=f"Changed {', '.join(data)}.",
            data=data,
        )


def _deleted(instance: Any, **kwargs: Any) -> None:
    what = kind_of(instance)
    record_event(
        instance,
        kind=f"{what}_deleted",
        message=f"Deleted the {what.label.lower()}.",
        data={
            name: value
            for name, value in _values(instance).items()
            if value and name not in SECRET
        },
    )


def _rights_changed(
    instance: Any, action: str, pk_set: set[int] | None, reverse: bool, **kwargs: Any
) -> None:
    """Record changed groups and permissions of an account."""
    if reverse or action not in ("post_add", "post_remove", "post_clear"):
        return
    model: type[Model] = kwargs["model"]
    names = [str(row) for row in model._default_manager.filter(pk__in=pk_set or ())]
    what = "groups" if model is Group else "permissions"
    record_event(
        instance,
        kind="account_changed",
        message=f"Changed {what}.",
        data={what: {action.removeprefix("post_"): names}},
    )


def _values(row: Any) -> dict[str, Any]:
    """Return a row's own fields as JSON values."""
    values = {}
    for field in row._meta.concrete_fields:
        if field.name not in NOT_A_CHANGE:
            value = field.value_from_object(row)
            is_plain = value is None or isinstance(value, bool | int | float | str)
            values[field.name] = (
                value
                if is_plain
                else [str(each) for each in value]
                if isinstance(value, list)
                else str(value)
            )
    return values


watch()
