"""What may stand in a query or a path: names and uuids that mean only themselves.

ONTAP reads operators inside a query's value (`*`, `|`, `!`, `<`, `>`, `..`, quotes,
the word null), so a name with one of them would find other things than itself.
"""

from __future__ import annotations

import re

from provisioner.gateways.errors import Refused
from provisioner.gateways.ontap.errors import problem

_OPERATORS = re.compile(r'[*|!<>"\x00-\x1f]|\.\.')
_JUNCTION_PATH = re.compile(r'/[^*#"><|?\\\x00-\x1f]{0,253}[^*#"><|?\\/\x00-\x1f]')
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def exact_name(name: str, *, operation: str) -> str:
    """Return the name if a query for it can find nothing else.

    Raises: Refused.
    """
    if not name or name == "null" or name.strip() != name or _OPERATORS.search(name):
        raise problem(
            Refused,
            f"ONTAP would not take {name!r} as one plain name.",
            operation=operation,
        )
    return name


def check_junction_path(path: str, *, operation: str) -> None:
    """Refuse a path where no volume can be mounted.

    An empty one would turn "mount" into "unmount".

    Raises: Refused.
    """
    if not _JUNCTION_PATH.fullmatch(path):
        raise problem(
            Refused, f"{path!r} cannot be a junction path.", operation=operation
        )


def path_uuid(uuid: str) -> str:
    """Return the uuid if it can stand in a request's path.

    An empty one would turn "delete this volume" into "delete volumes".

    Raises: ValueError.
    """
    if not _UUID.fullmatch(uuid):
        raise ValueError(f"not an ONTAP uuid: {uuid!r}")
    return uuid
