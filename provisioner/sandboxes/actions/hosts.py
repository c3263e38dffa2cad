"""Hosts of sandboxes, and the releases of p4d on them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.lib.refusals import InvalidRequest
from provisioner.sandboxes import refusals
from provisioner.sandboxes.models import P4dVersion, Sandbox, SandboxHost
from provisioner.sandboxes.queries import at_host


def p4d_version_save(*, by: User, release: str, path: str) -> P4dVersion:
    """Name the path of a release of p4d on the hosts of sandboxes.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    check_fields(P4dVersion(release=release, path=path))
    with transaction.atomic():
        version, _ = P4dVersion.objects.update_or_create(
            release=release, defaults={"path": path}
        )
        record_event(
            None,
            kind="p4d_version_saved",
            message=f"p4d {release} is at {path} on the hosts of sandboxes.",
            actor=by,
        )
    return version


def p4d_version_delete(*, by: User, version: P4dVersion) -> None:
    """Stop offering a release; sandboxes that use it keep running. Raises:
    NotAllowed."""
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        deleted, _ = P4dVersion.objects.filter(pk=version.pk).delete()
        if deleted:
            record_event(
                None,
                kind="p4d_version_deleted",
                message=f"p4d {version.release} is no longer offered.",
                actor=by,
            )


def sandbox_host_save(*, by: User, name: str, **fields: Any) -> SandboxHost:
    """Make a host for sandboxes, or change the one of this name.

    Raises: NotAllowed, InvalidRequest, SandboxInUse (its site or address).
    """
    permissions.require(permissions.can_administer(by))
    check_fields(SandboxHost(name=name, **fields))
    with transaction.atomic():
        before = SandboxHost.objects.filter(name=name).values(*fields).first()
        host = SandboxHost.objects.filter(name=name).first()
        moved = host is not None and (
            host.site != fields["site"] or host.address != fields["address"]
        )
        if host is not None and moved:
            _require_unused(host)
        host, _ = SandboxHost.objects.update_or_create(name=name, defaults=fields)
        after = SandboxHost.objects.filter(pk=host.pk).values(*fields).get()
        if changes := changes_between(before or dict.fromkeys(after), after):
            record_event(
                None,
                kind="sandbox_host_saved",
                message=f"Sandboxes can run on the host {name}.",
                actor=by,
                data=changes,
            )
    return host


def sandbox_host_delete(*, by: User, host: SandboxHost) -> None:
    """Remove a host of sandboxes.

    Raises: NotAllowed, SandboxInUse, SandboxHostInHistory.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        _require_unused(host)
        if Sandbox.with_retired.filter(host=host).exists():
            raise refusals.SandboxHostInHistory(host=host.name)
        SandboxHost.objects.filter(pk=host.pk).delete()
        record_event(
            None,
            kind="sandbox_host_deleted",
            message=f"Sandboxes no longer run on the host {host.name}.",
            actor=by,
        )


def _require_unused(host: SandboxHost) -> None:
    names = ", ".join(at_host(host).values_list("name", flat=True))
    if names:
        raise refusals.SandboxInUse(what=host.name, names=names)


def check_fields(row: Any, *, exclude: Collection[str] = ()) -> None:
    """Refuse a row with invalid fields. Raises: InvalidRequest."""
    try:
        row.clean_fields(exclude=exclude)
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest.at(field, " ".join(messages)) from error
