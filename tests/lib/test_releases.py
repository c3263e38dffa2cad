"""Releases are compared number by number."""

from __future__ import annotations

from provisioner.lib.releases import is_older


def test_releases_are_compared_by_their_numbers() -> None:
    assert is_older("2023.2", "2024.1")
    assert is_older("2024.2", "2024.10")
    assert not is_older("2024.10", "2024.2")
    assert not is_older("2024.2", "2024.2")
    assert not is_older("", "2024.2")
    assert not is_older("2024.2", "")
