"""The purposes of workspaces, and the client type of each.

Perforce lets no client change its type, so it is chosen when a workspace is requested.

Source: p4 help client, the Type field; client.readonly.dir in p4 help configurables.
"""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.lib.refusals import ActionRefused
from provisioner.routing.queries import route_for
from provisioner.sites.models import PerforceServer, ServerAbilities, Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.refusals import PurposeNotSupported

PARTITIONED_JNL = "partitioned-jnl"

CLIENT_TYPES: dict[str, str] = {
    # Its have list is a file of its own, so a flush locks no table that others use.
    Workspace.Purpose.CI: "readonly",
    Workspace.Purpose.CI_EDIT: "partitioned",
}
"""The client type that a purpose requires; others have a writeable client, or none."""


def client_type_for(purpose: str, *, site: Site, owner: User) -> str:
    """Return the client type of a new workspace, "" for writeable or no client.

    What is not known about its server refuses nothing: defining the client will show.

    Raises: PurposeNotSupported, RoutingRuleUnfit.
    """
    server = route_for(site, purpose=purpose, owner=owner).server
    types = known_client_types(server)
    if purpose == Workspace.Purpose.DEVELOPMENT:
        has_it = types is not None and PARTITIONED_JNL in types
        return PARTITIONED_JNL if server.partitioned_development and has_it else ""
    wanted = CLIENT_TYPES.get(purpose, "")
    if wanted and types is not None and wanted not in types:
        raise not_supported(purpose, server=server)
    return wanted


def not_supported(purpose: str, *, server: PerforceServer) -> PurposeNotSupported:
    """Return the refusal of a purpose whose client type the server lacks."""
    return PurposeNotSupported(
        server=server.name,
        type=CLIENT_TYPES.get(purpose, PARTITIONED_JNL),
        purpose=Workspace.Purpose(purpose).label,
    )


def unsupported_purposes(site: Site, *, owner: User) -> dict[str, str]:
    """Return the reasons, by purpose, why its server there does not support it."""
    reasons: dict[str, str] = {}
    for purpose in map(str, CLIENT_TYPES):
        try:
            client_type_for(purpose, site=site, owner=owner)
        except ActionRefused as refusal:
            reasons[purpose] = refusal.sentence
    return reasons


def known_client_types(server: PerforceServer) -> list[str] | None:
    """Return the server's last known client types, None if it was never asked."""
    known = ServerAbilities.objects.filter(server=server).order_by()
    return next(iter(known.values_list("client_types", flat=True)), None)
