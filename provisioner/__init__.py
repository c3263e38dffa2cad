"""Complete, already built Perforce workspaces in seconds, from NetApp FlexClones."""

from __future__ import annotations

__version__ = "0.1.0"
