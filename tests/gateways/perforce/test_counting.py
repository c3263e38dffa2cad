from __future__ import annotations

import hashlib
import time
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from provisioner.gateways.perforce.connection import Patience
from provisioner.gateways.perforce.files.have import HaveDigest
from provisioner.gateways.perforce.files.progress import SyncCounter
from provisioner.gateways.perforce.types import SyncPhase, SyncProgress

ROWS = st.lists(
    st.tuples(st.text("abAB/é.", min_size=1), st.integers(1, 99)),
    unique_by=lambda row: row[0],
)


def digest_of(rows: list[tuple[str, int]]) -> HaveDigest:
    digest = HaveDigest()
    for path, revision in rows:
        digest.add(f"//depot/{path}", revision=str(revision))
    return digest


@given(ROWS, st.randoms())
def test_the_digest_does_not_depend_on_the_order(
    rows: list[tuple[str, int]], random: Random
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)

    assert digest_of(rows).result() == digest_of(shuffled).result()


@given(ROWS, st.data())
def test_the_digest_tells_another_revision_apart(
    rows: list[tuple[str, int]], data: st.DataObject
) -> None:
    if not rows:
        return
    index = data.draw(st.integers(0, len(rows) - 1))
    path, revision = rows[index]
    changed = [*rows[:index], (path, revision + 1), *rows[index + 1 :]]

    assert digest_of(rows).result() != digest_of(changed).result()


def test_nothing_has_the_digest_of_nothing() -> None:
    have = HaveDigest().result()

    assert (have.count, have.digest) == (0, hashlib.sha256(b"").hexdigest())


def test_sync_records_add_up() -> None:
    seen: list[SyncProgress] = []
    counter = SyncCounter(seen.append)

    counter.count(
        {
            "depotFile": "//depot/a",
            "action": "added",
            "fileSize": "10",
            "totalFileCount": "3",
            "totalFileSize": "15",
        }
    )
    counter.count({"depotFile": "//depot/b", "action": "updated", "fileSize": "5"})
    counter.count({"depotFile": "//depot/c", "action": "deleted"})
    counter.end()

    assert (counter.files, counter.bytes) == (3, 15)
    assert seen[-1] == SyncProgress(
        phase=SyncPhase.FINISHING, files=3, files_total=3, bytes=15, bytes_total=15
    )


def test_a_file_counts_when_it_has_arrived() -> None:
    seen: list[SyncProgress] = []
    counter = SyncCounter(seen.append)
    totals = {"totalFileCount": "2", "totalFileSize": "15"}

    counter.report()
    counter.count({"depotFile": "//depot/a", "fileSize": "10", **totals})
    counter.report()
    counter.count({"depotFile": "//depot/b", "fileSize": "5"})
    counter.report()

    phases = [SyncPhase.PLANNING, SyncPhase.RECEIVING, SyncPhase.FINISHING]
    told = [seen[0], seen[-2], seen[-1]]
    assert [progress.phase for progress in told] == phases
    assert [(progress.files, progress.bytes) for progress in told] == [
        (0, 0),
        (0, 0),
        (1, 10),
    ]


def test_a_sync_in_two_commands_adds_up() -> None:
    seen: list[SyncProgress] = []
    counter = SyncCounter(seen.append)
    totals = {"totalFileCount": "1", "totalFileSize": "10"}

    counter.count({"depotFile": "//depot/a", "fileSize": "10", **totals})
    counter.count({"depotFile": "//depot/b", "fileSize": "10", **totals})
    counter.end()

    assert (seen[-1].files, seen[-1].files_total) == (2, 2)
    assert (seen[-1].bytes, seen[-1].bytes_total) == (20, 20)


def test_a_sync_without_work_ends_with_nothing_and_says_so() -> None:
    seen: list[SyncProgress] = []
    SyncCounter(seen.append).end()

    assert seen[-1].phase == SyncPhase.FINISHING
    assert (seen[-1].files, seen[-1].files_total) == (0, 0)


def test_progress_is_reported_a_few_times_a_second_at_most() -> None:
    seen: list[SyncProgress] = []
    counter = SyncCounter(seen.append)
    began = time.monotonic()

    while time.monotonic() - began < 0.5:
        counter.count({"depotFile": "//depot/a", "fileSize": "1"})

    assert 2 <= len(seen) <= 4


def asked(patience: Patience, *pauses: float) -> bool:
    """Ask as the library does, after pauses that need not be waited for."""
    goes_on = True
    for pause in pauses:
        patience._asked = time.monotonic() - pause
        goes_on = patience()
    return goes_on


def test_silence_adds_up_until_patience_is_over() -> None:
    patience = Patience(total_seconds=99, silent_seconds=2)

    assert asked(patience, 0.5, 0.5, 0.5)
    assert not asked(patience, 0.5, 0.5)
    assert patience.is_over


def test_data_in_between_starts_the_silence_anew() -> None:
    patience = Patience(total_seconds=99, silent_seconds=1.2)

    assert asked(patience, 0.5, 0.5, 0.01, 0.5, 0.5)


def test_a_client_busy_for_long_is_not_taken_for_a_silent_server() -> None:
    patience = Patience(total_seconds=9999, silent_seconds=2)

    assert asked(patience, 300.0, 0.01, 300.0)


def test_patience_ends_in_any_case() -> None:
    patience = Patience(total_seconds=0.01, silent_seconds=99)
    time.sleep(0.02)

    assert not patience()
