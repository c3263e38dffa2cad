"""Names and UUIDs that are safe in a query or a path: they match only themselves.

ONTAP interprets operators inside a query value: `*`, `|`, `!`, `<`, `>`, `..`, quotes,
and the word null. So a name that contains one would match other objects.
"""

from __future__ import annotations

import re

from provisioner.gateways.errors import Refused
from provisioner.gateways.ontap.errors import problem

_OPERATORS = re.compile(r'[*|!<>"\x00-\x1f]|\.\.')
_JUNCTION_PATH = re.compile(r'/[^*#"><|?\\\x00-\x1f]{0,253}[^*#"><|?\\/\x00-\x1f]')
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def exact_name(name: str) -> str:
    """Return the name if a query for it matches nothing else.

    Raises: Refused.
    """
    if not name or name == "null" or name.strip() != name or _OPERATORS.search(name):
        raise problem(
            Refused,
            f"ONTAP would not treat {name!r} as a plain name.",
            operation="name",
        )
    return name


def check_junction_path(path: str) -> None:
    """Refuse a path that cannot be a junction path.

    An empty one would turn "mount" into "unmount".

    Raises: Refused.
    """
    if not _JUNCTION_PATH.fullmatch(path):
        raise problem(Refused, f"{path!r} cannot be a junction path.", operation="name")


def path_uuid(uuid: str) -> str:
    """Return the UUID if it is safe in a request's path.

    An empty one would turn "delete this volume" into "delete volumes".

    Raises: ValueError.
    """
    if not _UUID.fullmatch(uuid):
        raise ValueError(f"not an ONTAP uuid: {uuid!r}")
    return uuid
