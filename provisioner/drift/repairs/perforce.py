"""Repairs in Perforce: clients. Each returns how it was resolved."""

from __future__ import annotations

import dataclasses

from provisioner.catalog.models import Template
from provisioner.catalog.steps.volume import template_client_spec
from provisioner.drift.comparison.facts import tag_of_client, without_tag
from provisioner.drift.models import Finding
from provisioner.drift.repairs.evidence import (
    GONE,
    CannotRepair,
    client_now,
    perforce_of,
    resting_row,
    workspace_in,
)
from provisioner.engine import slots
from provisioner.gateways import registry
from provisioner.gateways.perforce.depot_view import DepotView
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.lib.names import TAG_PREFIX
from provisioner.sites.models import Site
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.steps.flushing import flush_to_pin
from provisioner.workspaces.steps.provision import client_spec_of


def remove_client(finding: Finding) -> str:
    row = resting_row(finding)
    gone = (Workspace.State.RETIRED, Workspace.State.TRASHED)
    is_own = row is not None and finding.subject == row.client_name
    if row is not None and is_own and row.state not in gone:
        raise CannotRepair(f"It is {row.get_state_display().lower()} by now.")
    client = client_now(finding)
    if client is None:
        return GONE
    if row is None and _has_volume(finding.site, client):
        raise CannotRepair("Its volume exists, and may hold work. Adopt that first.")
    perforce = perforce_of(finding, client)
    opened = len(perforce.changes.list_opened(client.name))
    changes = len(perforce.changes.list_pending(client.name))
    if opened or changes:
        raise CannotRepair(
            f"The client {client.name} has {opened} opened files and {changes} "
            "pending changes. It is kept until its owner has dealt with them."
        )
    perforce.clients.delete(client.name)
    return f"The client {client.name} was deleted."


def _has_volume(site: Site, client: ClientSpec) -> bool:
    """Return whether a volume has the tag in a client's description."""
    tag = tag_of_client(client)
    if tag is None:
        return False
    comment = f"{TAG_PREFIX}{tag[0]}={tag[1]}"
    return bool(registry.ontap(site).list_volumes(comment_prefix=comment))


def remove_client_tag(finding: Finding) -> str:
    row = resting_row(finding)
    assert row is not None
    client = client_now(finding)
    if client is None or str(row.tag) not in client.description:
        return GONE
    if client.name == row.client_name:
        raise CannotRepair(f"The client {client.name} is the one of {row.name}.")
    perforce = perforce_of(finding, client)
    found = perforce.clients.find(client.name)
    if found is None:
        return GONE
    perforce.clients.save(
        dataclasses.replace(found, description=without_tag(found.description))
    )
    return f"The description of the client {found.name} does not name {row.name} now."


def finish_lost_client(finding: Finding) -> str:
    if finding.template_id is not None:
        return _finish_lost_template_client(finding)
    workspace = workspace_in(finding, Workspace.State.READY)
    server = workspace.perforce_server
    if slots.is_paused(server.pk):
        raise CannotRepair(
            "The Perforce server is paused. Try again once it is resumed."
        )
    if client_now(finding) is None:
        registry.perforce(server).clients.save(client_spec_of(workspace))
    perforce = registry.perforce_for(server, client=finding.subject)
    if perforce.files.have_list(finding.subject).count:
        return GONE
    # What was defined a moment ago, here or by a try that was killed, knows no file.
    flush_to_pin(perforce, workspace)
    return (
        f"The client {finding.subject} was defined again and flushed to change "
        f"{workspace.snapshot.change}, like a new one. p4 reconcile opens again what "
        "was opened; what was synced since then looks changed until it is synced again."
    )


def _finish_lost_template_client(finding: Finding) -> str:
    template = resting_row(finding)
    assert isinstance(template, Template)
    if client_now(finding) is not None:
        return GONE
    perforce = registry.perforce(template.perforce_server)
    perforce.clients.save(template_client_spec(template))
    return f"The client {finding.subject} was defined again."


def finish_client(finding: Finding) -> str:
    row = resting_row(finding)
    assert row is not None
    if row.state not in (Workspace.State.READY, Template.State.READY):
        raise CannotRepair(f"It is {row.get_state_display().lower()} by now.")
    found = _whole_client_now(finding)
    if found is None:
        return GONE
    wanted = _client_wanted_by(row)
    perforce_of(finding, found).clients.save(
        dataclasses.replace(
            found, root=wanted.root, owner=wanted.owner, host=wanted.host
        )
    )
    return f"Root, Owner and Host of the client {finding.subject} were corrected."


def _client_wanted_by(row: Workspace | Template) -> ClientSpec:
    if isinstance(row, Workspace):
        return client_spec_of(row)
    return template_client_spec(row)


def _whole_client_now(finding: Finding) -> ClientSpec | None:
    """Return the finding's client with its View, which refreshes its Access date.

    Raises: CannotRepair if it has another tag now.
    """
    client = client_now(finding)
    if client is None:
        return None
    return perforce_of(finding, client).clients.find(finding.subject)


def put_view_back(finding: Finding) -> str:
    """Restore the client's View; undo that if somebody opened a file meanwhile."""
    workspace = workspace_in(finding, Workspace.State.READY)
    found = _whole_client_now(finding)
    wanted = client_spec_of(workspace)
    if found is None or found.view == wanted.view:
        return GONE
    if found.stream:
        raise CannotRepair(f"Its View is made by Perforce from {found.stream}.")
    perforce = perforce_of(finding, found)
    _refuse_if_opened_outside(perforce, found.name, view=wanted.view)
    perforce.clients.save(dataclasses.replace(found, view=wanted.view))
    try:
        _refuse_if_opened_outside(perforce, found.name, view=wanted.view)
    except CannotRepair:
        perforce.clients.save(found)
        raise
    return (
        f"The View of the client {found.name} is that of its snapshot again. p4 sync "
        "brings what is mapped again."
    )


def _refuse_if_opened_outside(
    perforce: PerforceGateway, client: str, *, view: tuple[str, ...]
) -> None:
    """Refuse if the View that would be restored lacks files that somebody has opened.

    Raises: CannotRepair.
    """
    info = perforce.get_info()
    mapped = DepotView(view, is_case_sensitive=info.is_case_sensitive)
    outside = [
        file.depot_file
        for file in perforce.changes.list_opened(client)
        if not mapped.touches([file.depot_file])
    ]
    if outside:
        others = f" and {len(outside) - 1:,} more" if len(outside) > 1 else ""
        raise CannotRepair(
            f"{outside[0]}{others} {'are' if others else 'is'} opened in {client}, "
            "outside of the former View. Have that submitted, shelved or reverted "
            "first."
        )
