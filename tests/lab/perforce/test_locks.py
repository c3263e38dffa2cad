"""The lab's locks on tables: how long a wait lasts."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from provisioner.lab.perforce import locks
from provisioner.lab.perforce.locks import TableLocks


class Clock:
    """Time that passes while somebody sleeps, until what was to happen does."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleeps = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.sleeps += 1


@pytest.mark.parametrize("held", [0.0005, 0.003, 0.02, 0.1, 2.0])
def test_a_wait_lasts_little_longer_than_the_lock_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: float
) -> None:
    # Nobody sleeps: a busy machine would lengthen what is measured here.
    clock = Clock()
    monkeypatch.setattr(locks, "time", clock)
    ours, theirs = TableLocks(tmp_path), ExitStack()
    theirs.enter_context(TableLocks(tmp_path).writing({"db.have": 1}))
    let_go_at = clock.now + held
    ours.while_waiting = lambda: theirs.close() if clock.now >= let_go_at else None

    with ours.writing({"db.have": 1}):
        assert clock.now >= let_go_at
    waited = ours.uses["db.have"].waited[1]
    assert held <= waited <= 1.3 * held + 0.0002
    # It does not look all the time, either.
    assert clock.sleeps <= 60 + held / 0.005
