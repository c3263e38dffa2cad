"""What was submitted to a server, in order and with its files."""

from __future__ import annotations

import datetime as dt

from tests.support.perforce_scene import PerforceScene


def test_submitted_changes_come_in_order_and_in_batches(
    perforce: PerforceScene,
) -> None:
    before = perforce.gateway.changes.latest(())
    first = perforce.submit({"a.txt": b"a\n", "with space@.txt": b"b\n"})
    second = perforce.submit({"c.txt": b"c\n"})

    batch = perforce.gateway.changes.submitted_after(before, at_most=1)
    [change] = batch.changes
    assert change.number == first
    assert set(change.paths) == {
        f"{perforce.folder}/a.txt",
        f"{perforce.folder}/with space%40.txt",
    }
    assert change.user == perforce.account.user
    assert change.title
    assert "\n" not in change.title
    assert abs(change.submitted_at - dt.datetime.now(tz=dt.UTC)) < dt.timedelta(hours=1)

    after = perforce.gateway.changes.submitted_after(first, at_most=50)
    numbers = [change.number for change in after.changes]
    assert second in numbers
    assert numbers == sorted(numbers)


def test_nothing_new_is_an_empty_batch(perforce: PerforceScene) -> None:
    newest = perforce.gateway.changes.latest(()) + 10**6
    assert perforce.gateway.changes.submitted_after(newest, at_most=50).changes == ()


def test_changes_of_paths_come_newest_first_within_their_range(
    perforce: PerforceScene,
) -> None:
    numbers = [perforce.submit({f"in/{n}.txt": b"x\n"}) for n in range(3)]
    perforce.submit({"out/x.txt": b"x\n"})
    newest = perforce.gateway.changes.latest(())
    paths = (f"{perforce.folder}/in/...", f"{perforce.folder}/in/0.txt")

    def found(**asked: int) -> list[int]:
        batch = perforce.gateway.changes.submitted_under(
            paths, **{"above": 0, "upto": newest, "at_most": 50, **asked}
        )
        return [change.number for change in batch.changes]

    assert found() == numbers[::-1]
    assert found(at_most=2) == numbers[:0:-1]
    assert found(above=numbers[0], upto=numbers[1]) == [numbers[1]]
    assert found(above=newest) == []
    assert found(above=numbers[2]) == []
