"""Distinguish a workspace's own client from a stranger's of the same name.

Once our client is deleted, by its owner or with the workspace, anybody who saw its name
and form can create one like it. A stranger's client is neither read, changed nor
deleted, and blocks nothing: ours gets another name.
"""

from __future__ import annotations

from provisioner.audit_log.actions import record_event
from provisioner.gateways.perforce.types import ClientSpec
from provisioner.sites.replicas import require_bound
from provisioner.workspaces.marks import mark_in, new_mark, new_suffix
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.states import client_of
from provisioner.workspaces.steps.run import WorkspaceRun


def find_own_client(run: WorkspaceRun) -> ClientSpec | None:
    """Return the workspace's client, None if it is deleted or a stranger's.

    Raises: StepRefused (what is in it is known to another server alone).
    """
    client = run.perforce.clients.find(run.workspace.client_name)
    if client is None or not is_own(client, run.workspace):
        return None
    require_bound(run.server, client)
    return client


def is_own(client: ClientSpec, workspace: Workspace) -> bool:
    """Return whether a client is the workspace's: it carries our mark.

    An owner may have replaced the description. Then the client counts as ours if it
    has the owner and our root, and no retirement or restore has touched it.
    """
    if has_mark(client, workspace):
        return True
    has_its_root = client.root.rstrip("/") == str(workspace.path)
    is_owners = client.owner == workspace.p4_user
    return has_its_root and is_owners and client_of(workspace).is_whole


def has_mark(client: ClientSpec, workspace: Workspace) -> bool:
    """Return whether we have defined a client, and not deleted it since."""
    return mark_in(client.description) == workspace.client_mark


def forget_mark(run: WorkspaceRun) -> None:
    """Make a new mark for the next client, as anybody could read the last one."""
    _save(run, client_mark=new_mark())


def take_another_name(run: WorkspaceRun) -> None:
    """Give the client an unguessable new name, as another client has the old one."""
    taken = run.workspace.client_name
    _save(run, client_suffix=new_suffix())
    with run.writing():
        record_event(
            run.workspace,
            kind="client_renamed",
            message=name_taken(taken, workspace=run.workspace),
        )


def name_taken(taken: str, *, workspace: Workspace) -> str:
    """Return a sentence that says that the client got another name."""
    return (
        f"The client name {taken} is taken by another client. This workspace has the "
        f"client {workspace.client_name}."
    )


def _save(run: WorkspaceRun, **fields: str) -> None:
    with run.writing():
        Workspace.objects.filter(pk=run.workspace.pk).update(**fields)
    for field, value in fields.items():
        setattr(run.workspace, field, value)
