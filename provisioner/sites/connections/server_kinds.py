"""What a Perforce server says that it is, and what works through each kind.

Source: p4 help server, buildserver, forwardingreplica, distributed; the administrator's
guide on distribution servers.
"""

from __future__ import annotations

from provisioner.gateways.perforce.types import ServerInfo
from provisioner.gateways.reach import perforce_address
from provisioner.sites.connections.checklist import Remark, Wrong
from provisioner.sites.models import PerforceServer, ServerKind

_ELSEWHERE = "Give the P4PORT of the commit server, or of an edge server."


def _forwarding(kind: str) -> tuple[str, str]:
    return (
        f"It is the {kind} {{id}}. It forwards updates to the server it replicates "
        "from, and answers read-only commands from its own data, which may be behind.",
        "Templates are only as new as this data. If what was just written is not found "
        "here, give the P4PORT of the commit server, and this one as P4PORT for "
        "people.",
    )


# Everything works there.
_WHOLE = {
    "standard": "It is a standard server.",
    "commit-server": "It is the commit server.",
}
# Sentence and advice. {id} is the ServerID.
_REMARKED = {
    "edge-server": (
        "It is the edge server {id}. Only it knows what clients made there have synced "
        "and opened.",
        "Nothing, if the people of its sites use it, too.",
    ),
    "forwarding-replica": _forwarding("forwarding replica"),
    "forwarding-standby": _forwarding("forwarding standby"),
    "build-server": (
        "It is the build server {id}. Clients made there can only be synced: to open, "
        "shelve or submit in them is refused, through any other server, too.",
        "Use it only for templates and for workspaces of CI. Sites where people work "
        "need another server: work in workspaces of this one cannot be opened, shelved "
        "or transferred.",
    ),
    "P4AUTH": (
        "It keeps the accounts of other servers (P4AUTH).",
        "Check that the depots of your templates are on it.",
    ),
    "P4CHANGE": (
        "It gives change numbers to other servers (P4CHANGE).",
        "Check that the depots of your templates are on it.",
    ),
    "local": (
        "It is somebody's personal server, made by p4 init.",
        "Give the P4PORT of the server that everybody submits to.",
    ),
    "distribution-server": (
        "It is a distribution server: files are synced from it, and submits refused.",
        "Use it for templates and for workspaces without people.",
    ),
}
_REMARKED |= {
    "replica": (
        "It is a read-only replica: no client can be created or synced there.",
        _ELSEWHERE,
    ),
    "standby": (
        "It is a standby, and read-only: no client can be created or synced there.",
        _ELSEWHERE,
    ),
}
KINDS = frozenset({*_WHOLE, *_REMARKED})

# Of other services, such as distribution-server, a row is what its administrator says.
_KIND_OF = {
    **dict.fromkeys(
        ("standard", "commit-server", "P4AUTH", "P4CHANGE", "local"), ServerKind.COMMIT
    ),
    "edge-server": ServerKind.EDGE,
    **dict.fromkeys(
        ("forwarding-replica", "forwarding-standby"), ServerKind.FORWARDING
    ),
    "build-server": ServerKind.BUILD,
    **dict.fromkeys(("replica", "standby"), ServerKind.REPLICA),
}


def row_sentence(server: PerforceServer, info: ServerInfo) -> str:
    """Return the sentence for a row that says what the server says of itself.

    Raises: Wrong (its kind or ServerID is another), Remark (its upstream may be).
    """
    said = _kind_said(info)
    if said is not None and said != server.what:
        raise Wrong(
            f"It is entered as {server.kind_in_text}, and the server says that it is "
            f"{said.in_text}.",
            advice=f"Edit the server: set its kind to {said.label}, or enter the "
            "P4PORT of the intended server.",
        )
    behind = server.served_by
    if behind.server_id and info.server_id != behind.server_id:
        raise Wrong(
            f"Its ServerID is entered as {behind.server_id}, and the server says "
            f"{info.server_id or 'none'}.",
            advice="Correct the ServerID, or give the P4PORT of the server that was "
            "meant.",
        )
    upstream = server.upstream
    if (
        upstream is not None
        and info.replica_of
        and not _same_address(info.replica_of, upstream.p4port)
    ):
        raise Remark(
            f"It replicates from {info.replica_of}. Its upstream {upstream} is entered "
            f"with {upstream.p4port}.",
            advice="Nothing, if both lead to the same server.",
        )
    follows = f", and follows {upstream}" if upstream else ""
    named = f" {info.server_id}" if info.server_id else ""
    return f"It is {server.kind_in_text}{named}{follows}, as entered."


def _kind_said(info: ServerInfo) -> ServerKind | None:
    if info.is_brokered:
        return ServerKind.BROKER
    if info.is_proxied:
        return ServerKind.PROXY
    return _KIND_OF.get(info.services or "standard")


def _same_address(one: str, other: str) -> bool:
    try:
        return perforce_address(one) == perforce_address(other)
    except ValueError:
        return False


def kind_sentence(services: str, *, server_id: str) -> str:
    """Return the sentence for a supported kind of server.

    Raises: Remark (some features do not work there).
    """
    if services in _REMARKED:
        sentence, advice = _REMARKED[services]
        raise Remark(sentence.format(id=server_id or "of this port"), advice=advice)
    if services in _WHOLE:
        return _WHOLE[services]
    raise Remark(
        f"The server reports the type {services}, which Cloneyard does not know.",
        advice="Try it out with a template before people use it.",
    )
