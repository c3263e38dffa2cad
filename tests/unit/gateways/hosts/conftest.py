"""Trees that several tests here begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.gateways.hosts.trees import Chain, deep_chain


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    """A chain deeper than any path can name, and than Python calls itself."""
    with deep_chain(tmp_path / "chain", depth=1100) as made:
        yield made
