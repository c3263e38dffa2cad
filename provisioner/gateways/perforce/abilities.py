"""What a server can, asked without making anything."""

from __future__ import annotations

from provisioner.gateways.errors import Refused
from provisioner.gateways.perforce.connection import NEUTRAL_CLIENT, Connection
from provisioner.gateways.perforce.errors import NotPermitted

CLIENT_TYPES = ("writeable", "readonly", "partitioned", "partitioned-jnl")


def client_types(connection: Connection) -> tuple[str, ...]:
    """Return which types a new client may have, of those that we use.

    The form of a client that is not there, with a type, is the question: a server that
    lacks the type, or the setting it needs, refuses to show it. Nothing is made.

    Raises: NotPermitted.
    """
    return tuple(kind for kind in CLIENT_TYPES if _has_type(connection, kind))


def _has_type(connection: Connection, kind: str) -> bool:
    if kind == CLIENT_TYPES[0]:
        return True  # older servers have no name for what all of them have
    try:
        reply = connection.run("client", "-T", kind, "-o", NEUTRAL_CLIENT)
    except NotPermitted:
        raise
    except Refused:
        return False
    return any(record.get("Type") == kind for record in reply.records)
