from __future__ import annotations

import pytest

from provisioner.catalog.steps import syncing
from provisioner.catalog.steps.syncing import SyncMeter
from provisioner.gateways.perforce.types import SyncPhase, SyncProgress

MIB = 2**20


def progress(
    files: int, size: int, phase: SyncPhase = SyncPhase.RECEIVING
) -> SyncProgress:
    return SyncProgress(
        phase=phase, files=files, files_total=100, bytes=size, bytes_total=100 * MIB
    )


def test_a_sync_under_way_says_how_fast_and_how_much_longer() -> None:
    meter = SyncMeter()
    for second in range(11):
        meter.see(progress(second * 5, second * 5 * MIB), now=second)

    assert meter.text == (
        "50 MiB of 100 MiB, 5 files and 5 MiB a second, about 10 s left"
    )
    assert meter.figures == {
        "bytes": 50 * MIB,
        "bytes_total": 100 * MIB,
        "files_per_second": 5,
        "bytes_per_second": 5 * MIB,
        "seconds_left": 10,
    }


def test_one_large_file_after_many_small_ones_is_not_forgotten() -> None:
    """All but one of the files are there, but only a tenth of the bytes."""
    meter = SyncMeter()
    for second in range(11):
        meter.see(progress(second * 9, second * MIB), now=second)

    assert meter.seconds_left == pytest.approx(10)


def test_before_the_first_file_nothing_is_guessed() -> None:
    meter = SyncMeter()
    meter.see(
        SyncProgress(
            phase=SyncPhase.PLANNING, files=0, files_total=0, bytes=0, bytes_total=0
        ),
        now=0,
    )

    assert (meter.text, meter.figures) == (syncing.PLANNING_TEXT, {})
    assert SyncMeter().text == syncing.PLANNING_TEXT


def test_the_end_is_said_in_words() -> None:
    meter = SyncMeter()
    meter.see(progress(99, 99 * MIB, SyncPhase.FINISHING), now=0)
    assert meter.text.endswith(syncing.FINISHING_TEXT)
    meter.see(progress(100, 100 * MIB, SyncPhase.FINISHING), now=1)
    assert meter.text == "100 MiB of 100 MiB, 1 file and 1 MiB a second"


def test_a_sync_without_work_says_so() -> None:
    meter = SyncMeter()
    meter.see(
        SyncProgress(
            phase=SyncPhase.FINISHING, files=0, files_total=0, bytes=0, bytes_total=0
        ),
        now=0,
    )
    assert meter.text == syncing.UP_TO_DATE_TEXT
