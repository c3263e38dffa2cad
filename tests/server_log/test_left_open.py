"""Commands that had not ended where an uploaded log did: the next file ends them."""

from __future__ import annotations

import gzip
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from provisioner.lib.refusals import InvalidRequest
from provisioner.server_log import following, parsing
from provisioner.server_log.following import follow, read_once, read_text
from provisioner.server_log.models import (
    LockSum,
    LogCommand,
    LogSum,
    LogTableUse,
    ServerLog,
)
from provisioner.server_log.parsing import LogParser
from provisioner.server_log.records import LoggedCommand
from provisioner.sites.models import PerforceServer
from tests.server_log.logs import end, info, start, whole
from tests.support.crossing import (
    in_a_connection_of_its_own,
    wait_until_somebody_waits_for_a_lock,
)
from tests.support.factories import PerforceServerFactory

pytestmark = pytest.mark.django_db

LONG = "user-sync //depot/..."
TRACK = (
    *("--- lapse 42s", "--- filetotals (svr) send/recv files+bytes 7+90mb/0+0mb"),
    *("--- db.have", "---   total lock wait+held read/write 0ms+0ms/20ms+500ms"),
)
FIRST = (
    whole(1, "user-info")
    + info(start(410, LONG, second=1))
    + info(start(411, "user-files //...", second=2))
)
# It ends the sync; what process 411 ended began later than the files did.
SECOND = (
    whole(2, "user-have", second=30)
    + info(end(410, "42", second=43))
    + info(start(410, LONG, second=1), *TRACK)
    + info(end(411, "1.5", second=44))
    + whole(3, "user-where", second=50)
)


@pytest.fixture
def server(settings: Any) -> PerforceServer:
    settings.SERVER_LOG_DAYS = 20_000
    server: PerforceServer = PerforceServerFactory.create()
    return server


def read(server: PerforceServer, path: Path, text: str) -> str:
    path.write_bytes(gzip.compress(os.fsencode(text)))
    return read_text(read_once(server, path))


def test_the_next_file_brings_the_end_of_a_command_once(
    server: PerforceServer, tmp_path: Path
) -> None:
    said = read(server, tmp_path / "log.1", FIRST)
    before = LogCommand.objects.get(command="user-sync")
    later = read(server, tmp_path / "log.2", SECOND)

    assert said == "Read 3 commands (2 not ended yet) and 0 errors"
    assert (before.ended_at, before.lapse_ms) == (None, 0)
    assert later == "Read 2 commands and 0 errors"
    after = LogCommand.objects.get(command="user-sync")
    assert after.pk == before.pk
    assert (after.lapse_ms, after.files_sent, after.held_ms) == (42_000, 7, 500)
    assert after.ended_at is not None
    # Of another command, that nobody told the beginning of.
    log = ServerLog.objects.get()
    assert (log.commands, log.ends_without_start) == (5, 1)
    assert LogCommand.objects.get(command="user-files").ended_at is None
    with pytest.raises(InvalidRequest, match="nothing in it is new"):
        read_once(server, tmp_path / "log.2")
    for span in ("hour", "day"):
        of_ann = LogSum.objects.get(span=span, by="user", name="ann")
        assert (of_ann.commands, of_ann.over_30s) == (5, 1)
        assert (of_ann.lapse_ms, of_ann.longest_ms) == (43_500, 42_000)
        locks = LockSum.objects.filter(span=span).order_by("by")
        assert list(locks.values_list("by", "user", "write_held_ms")) == [
            ("command", "ann", 500),
            ("table", "", 500),
        ]
    assert LogTableUse.objects.get().command_id == after.pk


def test_a_command_may_be_open_through_several_files(
    server: PerforceServer, tmp_path: Path
) -> None:
    read(server, tmp_path / "log.1", FIRST)
    between = read(server, tmp_path / "log.2", whole(4, "user-dirs", second=20) * 2)
    read(server, tmp_path / "log.3", SECOND)

    assert between == "Read 2 commands and 0 errors"
    assert LogCommand.objects.get(command="user-sync").lapse_ms == 42_000
    assert ServerLog.objects.get().commands == 7


def test_what_its_process_ran_next_leaves_it_without_an_end(
    server: PerforceServer, tmp_path: Path
) -> None:
    read(server, tmp_path / "log.1", FIRST)
    text = whole(410, "user-dirs", second=40) + whole(3, "user-where", second=50)
    read(server, tmp_path / "log.2", text)

    log = ServerLog.objects.get()
    assert LogCommand.objects.get(command="user-dirs").lapse_ms == 500
    assert LogCommand.objects.get(command="user-sync").ended_at is None
    assert log.commands == LogCommand.objects.count() == 5
    assert [each["command"] for each in log.left_open] == ["user-files"]


def test_a_file_that_comes_after_the_next_one_adds_nothing_twice(
    server: PerforceServer, tmp_path: Path
) -> None:
    read(server, tmp_path / "log.2", SECOND)
    said = read(server, tmp_path / "log.1", FIRST)

    assert said == "Read 2 commands (1 not ended yet) and 0 errors"
    assert LogCommand.objects.get(command="user-sync").lapse_ms == 42_000
    log = ServerLog.objects.get()
    assert log.commands == LogCommand.objects.count() == 5
    assert log.ends_without_start == 1  # that of process 411
    assert LogSum.objects.get(span="day", by="user").commands == 5


def test_the_end_of_a_command_may_come_before_its_beginning(
    server: PerforceServer, tmp_path: Path
) -> None:
    ends = (
        whole(2, "user-have", second=30)
        + info(end(410, "41.6", second=43))
        + info(end(411, "1.5", second=44))
    )
    read(server, tmp_path / "log.3", whole(5, "user-print", second=55))
    read(server, tmp_path / "log.2", ends)
    before = ServerLog.objects.get().ends_without_start

    said = read(server, tmp_path / "log.1", FIRST)

    log = ServerLog.objects.get()
    assert (before, log.ends_without_start) == (2, 1)
    assert [pid for pid, *_ in log.loose_ends] == [411]
    assert said == "Read 3 commands (1 not ended yet) and 0 errors"
    sync = LogCommand.objects.get(command="user-sync")
    assert (sync.lapse_ms, sync.ended_at is None) == (41_600, False)
    assert LogSum.objects.get(span="day", by="command", name="user-sync").over_30s == 1


def test_a_worker_remembers_ends_until_an_older_file_is_uploaded(
    server: PerforceServer, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_text(whole(2, "user-have", second=30) + info(end(410, "42", second=43)))
    os.utime(path, (0, 0))
    log = ServerLog.objects.create(server=server, path=str(path))
    follow(log, for_seconds=60)
    log.refresh_from_db()
    assert log.ends_without_start == 1

    read(server, tmp_path / "log.1", FIRST)

    log.refresh_from_db()
    assert (log.ends_without_start, log.loose_ends) == (0, [])
    assert LogCommand.objects.get(command="user-sync").lapse_ms == 42_000


def test_what_its_end_told_counts_where_its_track_tells_less() -> None:
    parser = LogParser()
    parser.feed(info(end(410, ".008")).encode())
    parser.feed(info(start(410, "user-login -s", second=1), "--- lapse .009s").encode())

    [login] = parser.finish()

    assert isinstance(login, LoggedCommand)
    assert (login.lapse, login.is_completed) == (0.009, True)
    assert (login.user_cpu_ms, login.blocks_written, login.max_rss_kb) == (12, 16, 4096)


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_stores_while_an_upload_ends_forgets_nothing_of_it(
    server: PerforceServer, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    path.write_text(whole(5, "user-print", second=55))
    os.utime(path, (0, 0))
    log = ServerLog.objects.create(server=server, path=str(path))
    follow(log, for_seconds=60)
    with path.open("a") as file:
        file.write(whole(6, "user-where", second=56))
    os.utime(path, (0, 0))
    ends = whole(2, "user-have", second=30) + info(end(410, "42", second=43))

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            read(server, tmp_path / "log.2", ends + info(start(7, "user-dirs")))
            read_on = in_a_connection_of_its_own(lambda: follow(log, for_seconds=60))
            reading = pool.submit(read_on)
            wait_until_somebody_waits_for_a_lock()
        reading.result()
    log.refresh_from_db()
    follow(log, for_seconds=60)

    log.refresh_from_db()
    assert [pid for pid, *_ in log.loose_ends] == [410]
    assert [each["pid"] for each in log.left_open] == [7]
    assert log.commands == LogCommand.objects.count() == 4
    read(server, tmp_path / "log.1", FIRST)
    assert LogCommand.objects.get(command="user-sync").lapse_ms == 42_000


def test_no_more_loose_ends_are_remembered_than_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parsing, "MOST_LOOSE_ENDS", 2)
    parser = LogParser()
    many = [end(pid, "1", second=10 + pid) for pid in (1, 2, 3)]
    parser.feed("".join(info(each) for each in many).encode())
    parser.finish()

    assert [each.pid for each in parser.loose_ends] == [2, 3]
    assert parser.counts.ends_without_start == 3


def test_what_was_told_of_a_command_before_its_end_is_not_added_twice(
    server: PerforceServer, tmp_path: Path
) -> None:
    early = info(
        start(410, LONG, second=1),
        *("--- db.have", "---   total lock wait+held read/write 0ms+0ms/0ms+300ms"),
    )
    read(server, tmp_path / "log.1", FIRST + early)
    of_day = LockSum.objects.filter(span="day", by="command")
    assert of_day.get().write_held_ms == 300
    assert LogTableUse.objects.get().write_held_ms == 300

    read(server, tmp_path / "log.2", SECOND)

    for by in LockSum.By.values:
        locks = LockSum.objects.get(span="day", by=by)
        assert (locks.commands, locks.write_held_ms) == (1, 500)
    assert LogTableUse.objects.get().write_held_ms == 500
    assert LogSum.objects.get(span="day", by="user").held_ms == 500


def test_the_end_of_a_day_that_is_not_kept_is_summed_alone(
    server: PerforceServer, tmp_path: Path, settings: Any
) -> None:
    settings.SERVER_LOG_DAYS = 1
    read(server, tmp_path / "log.1", FIRST)
    read(server, tmp_path / "log.2", SECOND)

    assert not LogCommand.objects.exists()
    of_ann = LogSum.objects.get(span="day", by="user")
    assert (of_ann.commands, of_ann.lapse_ms) == (5, 43_500)


def test_a_worker_that_follows_the_next_file_ends_it(
    server: PerforceServer, tmp_path: Path
) -> None:
    read(server, tmp_path / "log.1", FIRST)
    log = ServerLog.objects.get()
    log.path, log.is_followed = str(tmp_path / "log"), True
    log.save()
    Path(log.path).write_text(SECOND)
    os.utime(log.path, (0, 0))

    follow(log, for_seconds=60)

    log.refresh_from_db()
    assert (log.commands, log.ends_without_start, log.left_open) == (5, 1, [])
    assert LogCommand.objects.get(command="user-sync").lapse_ms == 42_000
    assert LogSum.objects.get(span="day", by="user").commands == 5


def test_no_more_are_remembered_than_fit(
    server: PerforceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MOST_LEFT_OPEN", 1)
    read(server, tmp_path / "log.1", FIRST)

    [newest] = ServerLog.objects.get().left_open

    assert newest["command"] == "user-files"
