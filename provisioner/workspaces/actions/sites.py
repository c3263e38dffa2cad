"""Changing a site."""

from __future__ import annotations

from django.core.exceptions import ValidationError

from provisioner.accounts.models import User
from provisioner.gateways.hosts.mount_options import (
    MountOptionRefused,
    check_mount_options,
)
from provisioner.workspaces import permissions
from provisioner.workspaces.errors import InvalidRequest
from provisioner.workspaces.models import Site


def site_save(*, by: User, site: Site) -> Site:
    """Create or change a site after checking what would hurt its workspaces.

    Raises: NotAllowed, InvalidRequest (mount options, and what the fields refuse).
    """
    permissions.require(by.is_administrator)
    try:
        check_mount_options(site.mount_options)
    except MountOptionRefused as error:
        raise InvalidRequest(error.sentence) from error
    try:
        site.full_clean()
    except ValidationError as error:
        field, messages = next(iter(error.message_dict.items()))
        raise InvalidRequest(f"{field}: {messages[0]}") from error
    site.save()
    return site
