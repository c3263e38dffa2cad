"""What works through a Perforce server of each kind, and what does not.

Source: p4 help server, buildserver, forwardingreplica, distributed; the administrator's
guide on distribution servers.
"""

from __future__ import annotations

from provisioner.sites.connections.checklist import Remark, Wrong

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
_REFUSED = {
    "replica": "It is a read-only replica: no client can be created or synced there.",
    "standby": "It is a standby, and read-only: no client can be created or synced "
    "there.",
}
KINDS = frozenset({*_WHOLE, *_REMARKED, *_REFUSED})


def kind_sentence(services: str, *, server_id: str) -> str:
    """Return the sentence for a supported kind of server.

    Raises: Remark (some features do not work there), Wrong (nothing works).
    """
    if services in _REFUSED:
        raise Wrong(_REFUSED[services], advice=_ELSEWHERE)
    if services in _REMARKED:
        sentence, advice = _REMARKED[services]
        raise Remark(sentence.format(id=server_id or "of this port"), advice=advice)
    if services in _WHOLE:
        return _WHOLE[services]
    raise Remark(
        f"The server reports the type {services}, which Cloneyard does not know.",
        advice="Try it out with a template before people use it.",
    )
