"""The log of a Perforce server, followed on its host and stored."""

from __future__ import annotations

import copy
import datetime as dt
import gzip
import io
import os
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from provisioner.audit_log.models import Event
from provisioner.lib import clocks
from provisioner.server_log.following import follow
from provisioner.server_log.models import (
    LockSum,
    LogCommand,
    LogFile,
    LogMessage,
    LogSum,
    LogTableUse,
    ServerLog,
)
from provisioner.server_log.partitions import ensure_days
from provisioner.server_log.redaction import redacted, redacted_text
from provisioner.server_log.sweeps import sweep_log_days
from tests.server_log.logs import MIXED, SYNC, end, info, start, whole
from tests.support.factories import PerforceServerFactory

pytestmark = pytest.mark.django_db


@pytest.fixture
def log(tmp_path: Path, settings: Any) -> ServerLog:
    settings.SERVER_LOG_DAYS = 20_000
    server = PerforceServerFactory.create()
    path = str(tmp_path / "log")
    return ServerLog.objects.create(server=server, path=path, time_zone="Europe/Berlin")


def _write(log: ServerLog, text: str, *, age: int = 60) -> None:
    """Add to the log; `age` is how many seconds ago it was written."""
    path = Path(log.path)
    with path.open("ab") as file:
        file.write(os.fsencode(text))
    modified = path.stat().st_mtime - age
    os.utime(path, (modified, modified))


def _follow(log: ServerLog) -> ServerLog:
    log.refresh_from_db()
    follow(log, for_seconds=60)
    log.refresh_from_db()
    return log


def _names() -> list[str]:
    return list(LogCommand.objects.order_by("pk").values_list("command", flat=True))


def test_a_log_is_stored_with_its_sums(log: ServerLog) -> None:
    _write(log, MIXED)

    _follow(log)

    assert log.trouble == ""
    assert log.commands == LogCommand.objects.count() == 4
    # The last one has not ended.
    assert [each["command"] for each in log.running] == ["user-files"]
    sync = LogCommand.objects.get(command="user-sync")
    assert (sync.started_at.isoformat(), sync.lapse_ms) == (
        "2026-11-23T08:00:00+00:00",
        8390,
    )
    assert (sync.sent_mb, sync.cpu_ms, sync.wait_ms) == (1862, 665, 45)
    use = LogTableUse.objects.get(command_id=sync.pk)
    assert (use.table, use.write_held_ms) == ("clients", 1367)
    assert LogMessage.objects.get(kind="error").operation == "user-resolved"
    for span in ("hour", "day"):
        of_ann = LogSum.objects.get(span=span, by="user", name="ann")
        assert (of_ann.commands, of_ann.failed, of_ann.longest_ms) == (4, 1, 8390)
        locks = LockSum.objects.get(span=span, table="db.have", by="command")
        assert (locks.user, locks.write_wait_ms, locks.longest_held_ms) == (
            *("ann", 30),
            4,
        )


def test_what_comes_later_is_read_once(log: ServerLog) -> None:
    _write(log, MIXED)
    _follow(log)
    before = copy.copy(log)
    _follow(log)
    _write(log, info(end(79, "7.5", second=28)) + whole(80, "user-have", second=40))
    _follow(log)

    # As another worker that did not notice.
    follow(before, for_seconds=60)

    assert _names()[4:] == ["user-files", "user-have"]
    assert log.behind_bytes == 0
    assert LogSum.objects.get(span="day", by="user", name="ann").commands == 6


def test_a_block_that_is_being_written_waits_for_its_end(log: ServerLog) -> None:
    _write(log, SYNC + info(start(5, "user-info")), age=-60)

    _follow(log)

    assert log.running == []
    assert log.offset == len(SYNC)


def test_a_log_is_followed_through_rotation(log: ServerLog) -> None:
    path = Path(log.path)
    _write(log, SYNC + info(start(5, "user-edit")), age=300)
    _follow(log)
    _write(log, whole(6, "user-have"), age=240)
    compressed = path.with_name("log.1.gz")
    compressed.write_bytes(gzip.compress(path.read_bytes()))
    times = (path.stat().st_mtime,) * 2
    os.utime(compressed, times)
    of_another_program = path.with_name("log.other")
    of_another_program.write_text("x" * 1000)
    os.utime(of_another_program, (times[0] + 1,) * 2)
    path.unlink()
    _write(log, whole(7, "user-opened"), age=120)
    path.rename(path.with_name("log.2"))
    _write(log, info(end(5, "9.5", second=30)) + whole(8, "user-where", second=40))

    _follow(log)

    assert sorted(_names()) == [
        *("user-edit", "user-have", "user-opened", "user-sync", "user-where"),
    ]
    assert LogCommand.objects.get(command="user-edit").lapse_ms == 9500
    assert log.gaps == 0


def test_a_name_with_brackets_is_no_pattern(log: ServerLog) -> None:
    log.path = str(Path(log.path).with_name("log[1]"))
    log.save(update_fields=["path"])
    _write(log, MIXED)
    _follow(log)
    _write(log, whole(80, "user-have", second=40))
    Path(log.path).rename(f"{log.path}.1")
    _write(log, whole(81, "user-where", second=50))

    _follow(log)

    assert (log.gaps, _names()[-2:]) == (0, ["user-have", "user-where"])


def test_a_rotated_log_that_is_gone_is_a_gap(log: ServerLog) -> None:
    _write(log, SYNC)
    _follow(log)
    Path(log.path).write_text("")
    _follow(log)
    _write(log, whole(7, "user-opened"))

    _follow(log)

    assert _names() == ["user-sync", "user-opened"]
    assert log.gaps == 1


@pytest.mark.parametrize("lines", [500, 2**21])
def test_the_log_of_another_program_is_said_and_nothing_stored(
    log: ServerLog, lines: int
) -> None:
    _write(log, "x\n" * lines)

    _follow(log)

    assert "not the log of a Perforce server" in log.trouble
    assert (log.offset, LogMessage.objects.count()) == (0, 0)


def test_a_log_that_is_not_there_is_said(log: ServerLog) -> None:
    assert (
        _follow(log).trouble == f"{log.path} cannot be read: No such file or directory."
    )


def test_a_file_that_nobody_follows_is_read_once(log: ServerLog) -> None:
    log.delete()
    file = Path(log.path)
    server = log.server.name
    file.write_bytes(gzip.compress(os.fsencode(MIXED)))

    said = _said(server, file)
    again = _refusal(server, file)
    file.write_bytes(os.fsencode(MIXED + whole(90, "user-have", second=50)))
    later = _said(server, file)

    assert said.startswith("Read 5 commands (1 not ended yet) and 1 error.")
    assert again == f"{file} was read already: nothing in it is new."
    assert later.startswith("Read 1 command and 0 errors.")
    assert sorted(_names())[-2:] == ["user-resolved", "user-sync"]
    assert len(_names()) == 6
    assert Event.objects.filter(kind="server_log_read").count() == 2
    # A worker that follows it from now on reads what is new alone.
    now = ServerLog.objects.get()
    now.path, now.is_followed = str(file), True
    now.save()
    os.utime(file, (0, 0))
    assert _follow(now).commands == 6
    assert "read as it grows" in _refusal(server, file)
    # Nobody follows it any more: what is new in it is read, and once.
    ServerLog.objects.update(is_followed=False)
    _write(now, whole(92, "user-have", second=55))
    assert _said(server, file).startswith("Read 1 command and 0 errors.")
    ServerLog.objects.update(is_followed=True)
    assert _follow(now).commands == 7


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"x\n" * 500, "not the log of a Perforce server"),
        (b"x", "less than 256 bytes"),
        (gzip.compress(os.fsencode(MIXED))[:-20], "cannot be read"),
        (os.fsencode(info("\t") * 20), "no command and no error"),
        (None, "No such file"),
    ],
)
def test_what_cannot_be_read_whole_leaves_nothing(
    log: ServerLog, content: bytes | None, says: str
) -> None:
    if content is not None:
        Path(log.path).write_bytes(content)

    assert says in _refusal(log.server.name, Path(log.path))

    assert (LogFile.objects.count(), LogMessage.objects.count(), _names()) == (0, 0, [])
    log.refresh_from_db()
    assert (log.commands, log.other_lines) == (0, 0)


def _said(server: str, file: Path) -> str:
    out = io.StringIO()
    call_command("read_server_log", server, str(file), stdout=out)
    return out.getvalue()


def _refusal(server: str, file: Path) -> str:
    with pytest.raises(CommandError) as refusal:
        _said(server, file)
    return str(refusal.value)


def test_days_that_are_not_kept_are_summed_alone(log: ServerLog, settings: Any) -> None:
    settings.SERVER_LOG_DAYS = 30
    later = whole(9, "user-have").replace("2026/", "2199/")
    _write(log, SYNC.replace("2026/", "2020/") + later)

    _follow(log)

    assert _names() == []
    assert LogSum.objects.get(span="day", by="command").name == "user-sync"
    assert log.misdated == 1


def test_days_go_when_they_are_over_and_sums_by_day_a_year_later(
    log: ServerLog, settings: Any
) -> None:
    lately = (clocks.database_now() - dt.timedelta(days=60)).strftime("%Y/%m/%d")
    _write(log, SYNC.replace("2026/", "2020/") + SYNC.replace("2026/11/23", lately))
    _follow(log)
    settings.SERVER_LOG_DAYS = 30

    sweep_log_days(0)

    assert _names() == []
    kept = LogSum.objects.filter(by="user").values_list("span", "at__date")
    assert [f"{day:%Y/%m/%d}" for span, day in kept if span == "day"] == [lately]
    assert {span for span, _ in kept} == {"day", "week"}
    assert set(LogSum.objects.filter(by="command").values_list("span", flat=True)) == {
        *("week", "day", "hour"),
    }


def test_a_new_day_keeps_nobody_from_reading_others() -> None:
    ensure_days([dt.date(2020, 2, 28), dt.date(2020, 2, 29)])

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relation::regclass::text FROM pg_locks "
            "WHERE pid = pg_backend_pid() AND mode = 'AccessExclusiveLock' "
            "AND relation = ANY(%s::regclass[])",
            [["server_log_logcommand", "server_log_logtableuse"]],
        )
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT count(*) FROM pg_indexes WHERE tablename IN "
            "('server_log_logcommand', 'server_log_logcommand_20200229') "
            "GROUP BY tablename"
        )
        [(of_all,), (of_the_day,)] = cursor.fetchall()
    assert of_all == of_the_day


def test_names_of_a_day_are_counted_one_by_one() -> None:
    ensure_days([dt.date(2020, 2, 28)])

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attname FROM pg_attribute WHERE attstattarget = 1000 "
            "AND attrelid = 'server_log_logcommand_20200228'::regclass"
        )
        names = {name for (name,) in cursor.fetchall()}
    assert names == {"user", "client", "host", "program", "command"}


@pytest.mark.parametrize("number", ["9" * 30, "9" * 5000, "1.2.3"])
def test_numbers_that_no_server_has_written_stop_nobody(
    log: ServerLog, number: str
) -> None:
    used = (
        f"--- rpc msgs/size in+out 2+3/{number}mb+45mb himarks 7/7",
        f"---   reads+readbytes+writes+writebytes 2+{number}K+1+20",
        "--- db.have",
        f"---   total lock wait+held read/write {number}ms+20ms/30ms+40ms",
    )
    long_ago = whole(91, "user-info").replace("2026/11/23", "0001/01/01")
    _write(log, long_ago + whole(90, "user-have", *used, lapse=number) + MIXED)

    followed = _follow(log)

    assert (_names().count("user-have"), followed.trouble) == (1, "")
    assert (followed.commands, followed.misdated) == (6, 1)


def test_names_of_any_length_are_summed(log: ServerLog) -> None:
    # Nothing in it repeats, so that PostgreSQL cannot make it shorter.
    long = "".join(chr(0x4E00 + number) for number in range(9000))
    busy = "--- db.have\n---   total lock wait+held read/write 10ms+20ms/30ms+40ms"
    text = whole(9, "user-sync", busy).replace(" ann@", f" {long}@")
    _write(log, text.replace("[p4/", f"[{long}/").replace("db.have", f"db.{long}"))

    _follow(log)

    assert log.trouble == ""
    by = dict(LogSum.objects.filter(span="day").values_list("by", "name"))
    assert (by["user"], len(by["program"])) == (long[:200], 200)
    assert LockSum.objects.get(span="day", by="command").user == long[:200]


@pytest.mark.parametrize(
    ("command", "arguments", "stored"),
    [
        ("user-sync", "-q //depot/...", "-q //depot/..."),
        ("user-passwd", "-O old -P new", "***"),
        ("user-info", "-P s3cret -u ann", "-P *** -u ann"),
        ("user-counter", "token=abc x", "token=*** x"),
        ("user-files", "0123456789ABCDEF0123456789ABCDEF", "***"),
        ("user-print", "http://ann:pw@host/x", "http://***@host/x"),
    ],
)
def test_secrets_are_not_stored(command: str, arguments: str, stored: str) -> None:
    assert redacted(command, arguments) == stored


def test_a_torn_line_has_no_secret() -> None:
    line = "pid 4 ann@a 10.1.1.1 [p4] 'user-login -s alpha"
    assert redacted_text(line) == "pid 4 ann@a 10.1.1.1 [p4] 'user-login ***"
