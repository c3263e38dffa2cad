"""A local Perforce server for the lab: the P4 RPC protocol over real files.

What the official client asks for over the wire is answered as far as Cloneyard and a
developer in a workspace need it; anything else is refused by name.
"""

from __future__ import annotations
