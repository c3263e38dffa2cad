"""Trees that several tests here begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from provisioner.gateways.hosts.trees.run import Walker
from tests.gateways.hosts.trees import (
    WALKERS,
    Chain,
    deep_chain,
    walker_or_skip,
)


@pytest.fixture(params=WALKERS)
def walker(request: pytest.FixtureRequest) -> Walker:
    """Both walks pass every test; the compiled one needs a compiler here."""
    return walker_or_skip(request.param)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    """A chain deeper than any path can name, and than Python calls itself."""
    with deep_chain(tmp_path / "chain", depth=1100) as made:
        yield made
