"""The queues, each served by the hosts that can reach what its steps need."""

from __future__ import annotations

STORAGE = "storage"


PERFORCE = "perforce"


HOST = "host"


COMMANDS = "commands"


HOST_PREFIX = "host."


COMMANDS_PREFIX = "commands."
