"""Create, change and delete warm pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.refusals import AccountNotActive, require_complete
from provisioner.catalog.models import Template
from provisioner.catalog.refusals import require_not_archived
from provisioner.leases.actions.leases import LONGEST_SECONDS
from provisioner.lib import clocks
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.weekly import parse_window
from provisioner.mirrors.queries import is_mirrored_to
from provisioner.pools.models import Pool
from provisioner.pools.refusals import PoolExists
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.purposes import client_type_for

LARGEST = 1000
MOST_WINDOWS = 50
SHORTEST_SECONDS = 300


def pool_create(
    *,
    by: User,
    template: Template,
    purpose: str,
    owner: User,
    size: int,
    site: Site | None = None,
    windows: Sequence[str] = (),
    max_age_seconds: int = 24 * 3600,
    idle_seconds: int | None = 2 * 24 * 3600,
) -> Pool:
    """Create a warm pool of a template for an account and a purpose.

    It is at the given site, else at the template's.

    Raises: NotAllowed, InvalidRequest, AccountIncomplete, AccountNotActive,
    TemplateArchived, PurposeNotSupported, RoutingRuleUnfit, PoolExists.
    """
    permissions.require(permissions.can_administer(by))
    if purpose not in Workspace.Purpose.values:
        raise InvalidRequest(f"There is no purpose “{purpose}”.")
    require_complete(owner)
    if not owner.is_active:
        raise AccountNotActive(username=owner.username)
    require_not_archived(template)
    site = site or template.site
    _require_fit(template, site)
    client_type_for(purpose, site=site, owner=owner)
    settings = _checked(
        size=size,
        windows=windows,
        max_age_seconds=max_age_seconds,
        idle_seconds=idle_seconds,
    )
    with transaction.atomic():
        pool, is_new = Pool.objects.get_or_create(
            template=template,
            site=site,
            purpose=purpose,
            owner=owner,
            defaults=settings,
        )
    if not is_new:
        raise PoolExists(template=template.name, site=site.name, owner=owner.username)
    return pool


def _require_fit(template: Template, site: Site) -> None:
    """Refuse a site that never has snapshots of the template.

    Raises: InvalidRequest.
    """
    if site.pk != template.site_id and not is_mirrored_to(template, site):
        raise InvalidRequest.at(
            "site",
            f"{template.name} has no mirror at {site.name}. Create the mirror first, "
            f"or choose {template.site.name}.",
        )


def pool_update(*, by: User, pool: Pool, **changes: Any) -> Pool:
    """Change the given settings: size, windows, max_age_seconds, idle_seconds.

    It counts as a request: an idle pool is filled again, and a pause after failures
    ends.

    Raises: NotAllowed, InvalidRequest.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        row = Pool.objects.select_for_update(no_key=True).get(pk=pool.pk)
        present = {
            name: getattr(row, name)
            for name in ("size", "windows", "max_age_seconds", "idle_seconds")
        }
        for name, value in _checked(**{**present, **changes}).items():
            setattr(row, name, value)
        row.changed_at = clocks.database_now()
        row.failures, row.retry_at, row.status_message = 0, None, ""
        row.save()
    return row


def pool_delete(*, by: User, pool: Pool) -> None:
    """Delete a pool. Its members are retired; claimed workspaces stay.

    Raises: NotAllowed.
    """
    permissions.require(permissions.can_administer(by))
    with transaction.atomic():
        # Locked first: what is made with it is there before it is forgotten.
        for row in Pool.objects.select_for_update().filter(pk=pool.pk):
            row.delete()


def _checked(
    *,
    size: int,
    windows: Sequence[str],
    max_age_seconds: int,
    idle_seconds: int | None,
) -> dict[str, Any]:
    """Return the settings of a pool as they are stored.

    Raises: InvalidRequest.
    """
    lines = [" ".join(line.lower().split()) for line in windows if line.strip()]
    if len(lines) > MOST_WINDOWS:
        raise InvalidRequest(f"A schedule has up to {MOST_WINDOWS} lines.")
    sizes = [size]
    for line in lines:
        try:
            sizes.append(parse_window(line).number)
        except ValueError as error:
            raise InvalidRequest(str(error)) from error
    if any(not 0 <= each <= LARGEST for each in sizes):
        raise InvalidRequest(f"A pool has from 0 to {LARGEST} workspaces.")
    for span in (max_age_seconds, idle_seconds):
        if span is not None and not SHORTEST_SECONDS <= span <= LONGEST_SECONDS:
            raise InvalidRequest(
                f"Times are from {SHORTEST_SECONDS} to {LONGEST_SECONDS} seconds."
            )
    return {
        "size": size,
        "windows": lines,
        "max_age_seconds": max_age_seconds,
        "idle_seconds": idle_seconds,
    }
