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


DELIVERIES = "deliveries"
"""Messages to addresses that people gave, where whoever listens may stay silent."""


OWN_SLOTS = (COMMANDS_PREFIX, BISECTIONS_PREFIX, DELIVERIES)
"""What the queues begin with that workers have slots of their own for."""


def own_slots_of(queue: str) -> str:
    """Return the kind of slots that a queue's jobs need, "" for ordinary ones."""
    return next((prefix for prefix in OWN_SLOTS if queue.startswith(prefix)), "")
