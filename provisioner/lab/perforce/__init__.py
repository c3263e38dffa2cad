"""A local Perforce server for the lab: the P4 RPC protocol over real files.

It implements what Cloneyard and a developer in a workspace need of the official
client's commands; anything else is refused by name.
"""

from __future__ import annotations
