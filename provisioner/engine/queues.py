"""The queues, each served by the hosts that can reach what its steps need."""

from __future__ import annotations

STORAGE = "storage"


PERFORCE = "perforce"


HOST = "host"


COMMANDS = "commands"


BISECTIONS = "bisections"


HOST_PREFIX = "host."


COMMANDS_PREFIX = "commands."


BISECTIONS_PREFIX = "bisections."


SERVER_HOST_PREFIX = "p4d."
"""With the name of a Perforce server: what only a worker on its host can do."""


OWN = "own"
"""Stands for the queue that the subject of an operation names, its `own_queue`."""


SANDBOXES_PREFIX = "sandboxes."
"""With the name of a host of sandboxes: what only a worker on that host can do."""


DELIVERIES = "deliveries"
"""Webhook messages: their receivers may be slow or silent."""


LOADS = "loads"
"""What others do at Perforce servers: our steps give way by it, so it cannot wait for
them."""


OWN_SLOTS = (
    COMMANDS_PREFIX,
    BISECTIONS_PREFIX,
    DELIVERIES,
    SERVER_HOST_PREFIX,
    SANDBOXES_PREFIX,
    LOADS,
)
"""Queues, or beginnings of their names, with slots of their own on each worker."""


def own_slots_of(queue: str) -> str:
    """Return the kind of slots that a queue's jobs need, "" for ordinary ones."""
    return next((prefix for prefix in OWN_SLOTS if queue.startswith(prefix)), "")
