"""Where a Perforce server keeps its data."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.audit_log.changes import changes_between
from provisioner.lib.refusals import InvalidRequest
from provisioner.sandboxes import refusals
from provisioner.sandboxes.models import NEEDED_ROLES, Role, ServerVolume, ServerVolumes
from provisioner.sites.models import PerforceServer, Site


def server_volumes_save(
    *, by: User, server: PerforceServer, site: Site, places: str
) -> ServerVolumes:
    """Say which volumes of a site's SVM a server is on, in place of what was said.

    `places` has one a line: the role, then VOLUME or VOLUME/PATH.

    Raises: NotAllowed, InvalidRequest, VolumeListIncomplete.
    """
    permissions.require(permissions.can_administer(by))
    described = [_place(line) for line in places.splitlines() if line.strip()]
    roles = [place.role for place in described]
    for role in Role:
        if roles.count(role) > 1:
            raise InvalidRequest.at("places", f"Name the {role.value} once.")
    for role in NEEDED_ROLES:
        if role not in roles:
            raise refusals.VolumeListIncomplete(missing=role.value)
    with transaction.atomic():
        before = ServerVolumes.objects.filter(server=server).first()
        then = before and _as_said(before)
        of, _ = ServerVolumes.objects.update_or_create(
            server=server, defaults={"site": site}
        )
        of.places.all().delete()
        for place in sorted(described, key=lambda each: Role.values.index(each.role)):
            place.of = of
            place.save()
        said = _as_said(of)
        changes = changes_between(then or dict.fromkeys(said), said)
        if changes:
            record_event(
                server,
                kind="server_volumes_saved",
                message=f"Its data is on volumes of {site.name}.",
                actor=by,
                data=changes,
            )
    return of


def _as_said(of: ServerVolumes) -> dict[str, Any]:
    lines = [place.line for place in of.places.all()]
    return {"site": of.site.name, "places": "\n".join(lines)}


def _place(line: str) -> ServerVolume:
    """Return the place that a line names. Raises: InvalidRequest."""
    words = line.split()
    if len(words) != 2 or words[0] not in Role:
        raise InvalidRequest.at(
            "places",
            f"“{line.strip()}” is not db, journal, log or depot with VOLUME/PATH.",
        )
    role = Role(words[0])
    volume, _, path = words[1].partition("/")
    if role.is_file:
        path = path or role.value
    place = ServerVolume(role=role, volume=volume, path=path.strip("/"))
    try:
        place.clean_fields(exclude=["of"])
    except ValidationError as error:
        said = " ".join(error.messages)
        raise InvalidRequest.at("places", f"“{line.strip()}”: {said}") from error
    return place


def volumes_of(server: PerforceServer) -> ServerVolumes:
    """Return where a server's data is. Raises: ServerNotDescribed."""
    volumes = ServerVolumes.objects.select_related("site").filter(server=server).first()
    if volumes is None:
        raise refusals.ServerNotDescribed(server=server.name)
    return volumes
