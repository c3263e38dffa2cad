"""Check, before anything is made, that the owner may read the clone's files.

A clone bypasses Perforce: it has everything that the template's client could read. So
its owner needs at least that access.
"""

from __future__ import annotations

from collections.abc import Collection

from provisioner.catalog.pins import parts_of
from provisioner.gateways import registry
from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.protections import (
    Protections,
    TooIntricate,
    find_unreadable,
)
from provisioner.gateways.perforce.readable import Reading
from provisioner.gateways.perforce.specs import parse_client_spec
from provisioner.lib.refusals import StepRefused
from provisioner.routing.steps import ensure_routed
from provisioner.sites.models import PerforceServer
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.run import WorkspaceRun


def ensure_access(run: WorkspaceRun, *, changes: Collection[int] = ()) -> None:
    """Verify that the owner exists in Perforce and may read all of the pinned view.

    The view is that of the snapshot's client, as the server had it for a stream. Users
    and protections are those of the site's server. Only what files exist may be asked
    at another one, once that has the pinned change.
    `changes` are others to which it will be synced, with other files. Without an answer
    there is no clone. Exclusions that no file of the snapshot is under deny nobody. A
    build-only workspace is checked too; if its server's row says that read access is
    not checked, its owner need not be a user there.

    Raises: StepRefused.
    """
    workspace, server = run.workspace, run.site.perforce_server
    user = workspace.p4_user
    ensure_routed(
        run,
        workspace,
        change=max(workspace.snapshot.change, *changes, 0),
        has_client=workspace.routed_to is not None and _has_client(workspace),
    )
    if not workspace.client_name and not server.checks_read_access:
        return
    with registry.perforce(server).at_once() as at_site:
        if at_site.spelling_of(user) is None:
            raise StepRefused(
                f"Perforce does not know the user {user}. Create it, or correct the "
                "Perforce name of the account. Then retry.",
                code="p4_user_unknown",
            )
        if not server.checks_read_access:
            return
        protections = _protections_of(at_site, server, user)
    view = parse_client_spec(workspace.snapshot.client_spec).view
    try:
        found = _unreadable(run, view, protections, changes=changes)
    except TooIntricate as error:
        raise StepRefused(
            f"Whether {user} may read all of this template cannot be determined: the "
            "protections and the view overlap in too many ways. Ask an "
            "administrator for a template with a simpler view.",
            code="read_access_unknown",
        ) from error
    if found is not None:
        raise StepRefused(
            f"{user} may not read {found} in Perforce, which is part of this "
            "template. Ask a Perforce administrator for read access, then retry; or "
            "choose a template without it.",
            code="not_readable",
        )


def _has_client(workspace: Workspace) -> bool:
    """Return whether an earlier try may have defined its client."""
    tried = {"steps__name": "client", "steps__attempt__gt": 0}
    return workspace.operations.filter(**tried).exists()


def _unreadable(
    run: WorkspaceRun,
    view: tuple[str, ...],
    protections: Protections,
    *,
    changes: Collection[int],
) -> str | None:
    """Return the rule that denies the owner a file of the snapshot, or None.

    If patterns do not decide, the server tells whether such files exist.

    Raises: TooIntricate.
    """
    if find_unreadable(view, protections) is None:
        return None
    reading = Reading(view, protections)
    never = reading.never_granted()
    if never is not None:
        return never.path
    pin = run.workspace.snapshot
    crossings = reading.crossings()
    pinned = {pin.change, *(part.change for part in parts_of(pin))}
    for change in sorted(pinned.union(changes)):
        file = run.perforce.files.find(
            crossings,
            change=change,
            is_wanted=lambda path: reading.forbidding(path) is not None,
        )
        if file is not None:
            return reading.forbidding(file)
    return None


def _protections_of(
    at_site: PerforceGateway, server: PerforceServer, user: str
) -> Protections:
    try:
        return at_site.protections_of(user, host=server.read_access_host or "")
    except Refused as error:
        raise StepRefused(
            f"Whether {user} may read this template could not be checked: {error} "
            f"An administrator can give our account {server.p4user} super, or admin "
            "together with dm.protects.allow.admin=1; or say on the Perforce server's "
            "row that read access is not checked.",
            code="read_access_unknown",
        ) from error
