"""The comparison with Perforce: clients of ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provisioner.drift.comparison.facts import (
    ClientWork,
    Known,
    KnownTree,
    SeenPerforce,
    Wanted,
    about,
    tag_of_client,
)
from provisioner.drift.models import Finding
from provisioner.gateways.perforce.types import ClientSpec

Kind = Finding.Kind
Action = Finding.Action


def compare_perforce(known: Known, seen: SeenPerforce) -> list[Finding]:
    """Return a finding for each difference between rows and Perforce once."""
    trees = known.by_tag()
    found: list[Finding] = []
    names = set()
    for client in seen.clients:
        tag = tag_of_client(client)
        if tag is None or tag[1] in known.elsewhere:
            continue
        names.add(client.name)
        tree = trees.get(tag)
        if tree is None:
            if known.judges(client):
                found.append(_client_of_nobody(client, seen, kind=tag[0]))
        elif not tree.is_in_motion:
            found += _client_of_row(tree, client, seen)
    for tree in known.trees:
        is_missing = tree.client is Wanted.YES and tree.client_name not in names
        if is_missing and not tree.is_in_motion:
            found.append(_row_without_client(tree))
    return found


def _client_of_nobody(client: ClientSpec, seen: SeenPerforce, *, kind: str) -> Finding:
    return Finding(
        kind=Kind.CLIENT_WITHOUT_ROW,
        subject=client.name,
        details=_client_evidence(client, seen.work.get(client.name)),
        action=Action.REMOVE,
        sentence=f"The client {client.name} is described as that of a {kind} that is "
        "not in this database. Another installation of Cloneyard may own it. Removing "
        "it never forces: Perforce keeps a client with work.",
    )


def _client_of_row(
    tree: KnownTree, client: ClientSpec, seen: SeenPerforce
) -> Iterator[Finding]:
    work = seen.work.get(client.name)
    if tree.has_stand_in(client):
        if tree.client is Wanted.MAYBE:
            return  # trying again goes on with it, and retiring removes it
        yield about(
            tree,
            kind=Kind.CLIENT_WITHOUT_ROW,
            subject=client.name,
            details=_client_evidence(client, work),
            action=Action.REMOVE,
            sentence=f"The client {client.name} stood in for that of {tree.title} for "
            "a while and is not needed any more.",
        )
    elif client.name != tree.client_name:
        yield about(
            tree,
            kind=Kind.CLIENT_TAG_COPIED,
            subject=client.name,
            details={
                **_client_evidence(client, work),
                "own": {"name": tree.client_name, "owner": tree.client_owner},
            },
            action=Action.REMOVE,
            sentence=f"The client {client.name} is described as that of {tree.title}, "
            "but is not the one that Cloneyard made for it. Find out whose it is. "
            "Only the tag in its description is removed; the client stays.",
        )
    elif tree.client is Wanted.NO:
        is_empty = work is not None and work.is_empty
        is_retired = tree.volume is Wanted.NO
        yield about(
            tree,
            kind=Kind.CLIENT_WITHOUT_ROW,
            subject=client.name,
            details=_client_evidence(client, work),
            action=Action.REMOVE,
            is_automatic=is_empty and is_retired and tree.is_its_client(client),
            sentence=f"The client {client.name} is left of {tree.title}, which "
            f"{'was retired' if is_retired else 'is in the trash'}."
            + ("" if is_empty else " It has unsubmitted work."),
        )
    elif tree.client is Wanted.YES:
        yield from _client_differs(tree, client, seen.views.get(client.name))


def _client_differs(
    tree: KnownTree, client: ClientSpec, view: tuple[str, ...] | None
) -> Iterator[Finding]:
    differing: dict[str, dict[str, Any]] = {}
    if client.root.rstrip("/") != tree.client_root.rstrip("/"):
        differing["Root"] = {"is": client.root, "was": tree.client_root}
    if client.owner != tree.client_owner:
        differing["Owner"] = {"is": client.owner, "was": tree.client_owner}
    if client.host:
        differing["Host"] = {"is": client.host, "was": ""}
    if differing:
        fields = ", ".join(differing)
        yield about(
            tree,
            kind=Kind.CLIENT_DIFFERS,
            subject=client.name,
            details={"fields": differing},
            action=Action.FINISH,
            sentence=f"{fields} of the client {client.name} of {tree.title} "
            f"{'was' if len(differing) == 1 else 'were'} changed. The "
            "repair corrects that and leaves the View unchanged.",
        )
    if view is not None and tree.client_view and view != tree.client_view:
        yield _view_differs(tree, view)


def _view_differs(tree: KnownTree, view: tuple[str, ...]) -> Finding:
    return about(
        tree,
        kind=Kind.CLIENT_VIEW_DIFFERS,
        subject=tree.client_name,
        details={
            "fields": {"View": {"is": list(view), "was": list(tree.client_view)}},
            "lines_out": [line for line in view if line not in tree.client_view],
            "lines_in": [line for line in tree.client_view if line not in view],
        },
        action=Action.FINISH,
        sentence=f"The View of the client {tree.client_name} of {tree.title} was "
        "changed. That is allowed, but the workspace no longer has the "
        "whole snapshot.",
    )


def _row_without_client(tree: KnownTree) -> Finding:
    return about(
        tree,
        kind=Kind.ROW_WITHOUT_CLIENT,
        subject=tree.client_name,
        action=Action.FINISH,
        sentence=f"The client {tree.client_name} of {tree.title} is gone from "
        "Perforce. Finishing defines it again"
        + (
            " and flushes it to what its snapshot has; “p4 reconcile” then opens what "
            "differs."
            if tree.is_workspace
            else "; its next build tells Perforce what it has."
        ),
    )


def _client_evidence(client: ClientSpec, work: ClientWork | None) -> dict[str, Any]:
    evidence: dict[str, Any] = {
        "owner": client.owner,
        "root": client.root,
        "description": client.description,
        "accessed_at": client.accessed_at.isoformat() if client.accessed_at else "",
    }
    if work is not None:
        evidence |= {
            "opened": work.opened,
            "pending": work.pending,
            "shelved": work.shelved,
        }
    return evidence
