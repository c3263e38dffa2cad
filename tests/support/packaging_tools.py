"""Tools that make and check what is shipped, where .ci/packaging could install them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
PLACE = CACHE / "cloneyard/packaging/bin"


def tool(name: str) -> Path:
    """Return a tool's path; the test is skipped where it could not be installed."""
    if not (PLACE / name).exists():
        pytest.skip(f"{name} is not here: .ci/packaging says why")
    return PLACE / name
