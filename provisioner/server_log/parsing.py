"""Parse the text log of a Perforce server as it grows.

A log is made of blocks, each below a line "Perforce server info:" or "Perforce server
error:". A command begins in one block and ends in another; what it used ("track") is
told in a third one, or while it runs. Lines of the server about its threads fall
anywhere. The vendor does not document the format; written from logs, and compared with
what rcowham/go-libp4dlog reads in them.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import deque
from collections.abc import Iterable
from functools import lru_cache

from provisioner.lib.storable import storable
from provisioner.server_log.records import (
    LoggedCommand,
    LogMessage,
    LooseEnd,
    MessageKind,
    Numbers,
    ReadCounts,
    Record,
    TableUse,
)
from provisioner.server_log.refusals import NotAServerLog

_HEADER = b"Perforce server "
_BETWEEN_BLOCKS = b"\n" + _HEADER
_INFO = b"info:\n"
_ERROR = b"error:\n"
# A search with many patterns makes lines of a megabyte.
LARGEST_BLOCK = 4 * 2**20
_LONGEST_TEXT = 4000
# Without a header in so much of it, it is the log of another program.
_HEADER_WITHIN = 2**20
# What a command used is told up to so many seconds after its end.
_SETTLED_AFTER = 3
_MOST_RUNNING = 20_000
# Times are whole seconds, and a lapse is told a moment later.
_ROUNDED = 2
# Of processes that had begun before the first file that is read.
MOST_LOOSE_ENDS = 2_000
_LOOSE_ENDS_OF_ONE = 4
# Lines of commands by which these are found again; others are read again.
_MOST_LINES = 5_000
# Blocks are written a little out of order; a clock that is set back goes further.
_CLOCK_JUMP = 60


def _compiled(pattern: bytes, flags: int = 0) -> re.Pattern[bytes]:
    """Compile a pattern whose numbers have so many digits as servers write at most.

    Arguments of people have several lines, too, and longer numbers fit nowhere.
    """
    return re.compile(pattern.replace(rb"(\d+)", rb"(\d{1,12})"), flags)


_TIME = rb"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)"
_LAPSE = rb"(\d{1,9}\.?\d{0,9}|\.\d{1,9})s"
_AMOUNT = rb"(\d{1,12}\.?\d{0,9}|\.\d{1,9})([KMGTP]?)"
_USAGE = (rb"(%(n)s\+%(n)sus %(n)s\+%(n)sio %(n)s\+%(n)snet %(n)sk %(n)spf)") % {
    b"n": rb"\d{1,12}"
}
_NUMBER = re.compile(rb"\d+")
_COMMAND = (
    rb"([^ @\n]*)@([^ \n]*) ([^ \n]*) \[(.*?)\] '([\w-]+)(?: ?(.*)'([^'\n]*)|([^'\n]*))"
)
_EVENT = _compiled(
    rb"\t"
    + _TIME
    + rb" pid (\d+) (?:(completed) "
    + _LAPSE
    + rb"(?: "
    + _USAGE
    + rb")?.*|(compute end) "
    + _LAPSE
    + rb".*|"
    + _COMMAND
    + rb")(?:\n|\Z)"
)
_ABOUT_ITSELF = _compiled(
    rb"^"
    + _TIME
    + rb" \d+ pid (\d+): (Server (is now using|now has|under resource pressure).*)\n?",
    re.MULTILINE,
)
_OF_SERVER = b": Server "
_ABOUT = {
    b"is now using": MessageKind.THREADS,
    b"now has": MessageKind.PAUSED_THREADS,
    b"under resource pressure": MessageKind.PRESSURE,
}
# Most are 0, and told as None: nobody makes numbers of them. A hold below zero, of a
# clock that was set back, is none.
_MS = rb"(?:0|([1-9]\d{0,11})|-\d+)ms"
_MS4 = _MS + rb"\+" + _MS + rb"/" + _MS + rb"\+" + _MS
# The lines below a table, in the order in which servers write them; each may be absent.
_TABLE = _compiled(
    rb"\n--- ((?:db|rdb)\.\S+|[\w-]+/\S+)(?=\n)"
    rb"(?:\n---   pages in\+out\+cached (\d+)\+(\d+)\+(\d+)(?=\n))?"
    rb"(?:\n---   pages split internal\+leaf .*)?"
    rb"(?:\n---   locks read/write (\d+)/(\d+) rows get\+pos\+scan put\+del "
    rb"(\d+)\+(\d+)\+(\d+) (\d+)\+(\d+)(?=\n))?"
    rb"(?:\n---   total lock wait\+held read/write " + _MS4 + rb"(?=\n))?"
    rb"(?:\n---   (?:max lock|locks) wait\+held read/write " + _MS4 + rb"(?=\n))?"
    rb"(?:\n---   peek count (\d+) wait\+held total/max (\d+)ms\+(\d+)ms/.*)?"
)
# Of a text split by it: a text between tables, the name of one, and its numbers.
_OF_TABLE = 1 + _TABLE.groups
# What a command used beside tables, a line each, in the usual order.
_USED = _compiled(
    rb"(?:--- lapse " + _LAPSE + rb".*\n)?"
    rb"(?:--- paused " + _LAPSE + rb".*\n)?"
    rb"(?:--- usage " + _USAGE + rb".*\n)?"
    rb"(?:--- memory cmd/proc (\d+)mb/(\d+)mb.*\n)?"
    rb"(?:--- rpc msgs/size in\+out (\d+)\+(\d+)/(\d+)mb\+(\d+)mb himarks "
    rb"\d+/\d+(?: snd/rcv " + _LAPSE + rb"/" + _LAPSE + rb")?.*\n)?"
    rb"(?:--- filetotals \(\w+\) send/recv files\+bytes "
    rb"(\d+)\+(\d+)mb/(\d+)\+(\d+)mb.*\n)?"
)
_TRACK_ARCHIVE = _compiled(
    rb"---   reads\+readbytes\+writes\+writebytes \d+\+"
    + _AMOUNT
    + rb"\+\d+\+"
    + _AMOUNT
)
_ESTIMATES = _compiled(
    rb"\tServer network estimates: files added/updated/deleted=(\d+)/(\d+)/(\d+), "
    rb"bytes added/updated=(\d+)/(\d+)"
)
_TRIGGER = re.compile(rb" trigger ([^ ]+)$")
_TRIGGER_LAPSE = _compiled(rb"lapse " + _LAPSE + rb"\n?")
_ERROR_DATE = re.compile(rb"^\tDate " + _TIME, re.MULTILINE)
_ERROR_PID = _compiled(rb"^\tPid (\d+)$", re.MULTILINE)
_ERROR_OPERATION = re.compile(rb"^\tOperation: (.*)$", re.MULTILINE)
_JSON_AT_END = re.compile(rb" \{.*\}$")
_REMOVED = b" exited unexpectedly, removed from monitor table."
_OF_NO_USE = (
    b"Rpc himark:",
    b"server to client",
    b"server to inter",
    b"Forwarder set trusted client address",
    b"NetSslTransport::SendOrReceive",
    b"locks acquired by blocking",
)
# Their start is told, never their end.
_NEVER_COMPLETED = frozenset(
    ("rmt-FileFetch", "rmt-FileFetchMulti", "rmt-JournalPos", "client-Stats")
)
_PULLS_ON = re.compile(r"-\w*[iI]")
_FAILED = (b"--- exited on fatal server error", b"--- failed authentication check")
_SIZES = {b"": 0, b"K": 1, b"M": 2, b"G": 3, b"T": 4, b"P": 5}
# Locks of these have names of their own; of the others each entity has one.
_NAMED_LOCKS = ("meta/", "storageup/", "replica/")
_TABLES = ("db.", "rdb.")


class LogParser:
    """Turns the bytes of a log into records, with memory that does not grow with it.

    `running` are the commands that had not ended where a parser before this one
    stopped, and `offset` is where that was: `resume_at` of that parser. `loose_ends`
    are those that parsers before this one found without their commands, which may begin
    here: files are not always sent in their order.
    """

    def __init__(
        self,
        *,
        offset: int = 0,
        running: Iterable[LoggedCommand] = (),
        loose_ends: Iterable[LooseEnd] = (),
    ) -> None:
        self.counts = ReadCounts()
        self._loose_ends: dict[int, list[LooseEnd]] = {}
        for each in loose_ends:
            self._loose_ends.setdefault(each.pid, []).append(each)
        # As if a line had ended before the first one.
        self._rest = b"\n"
        self._rest_at = offset - 1
        self._is_log = offset > 0
        self._now = 0
        self._times: tuple[bytes, int] = (b"", 0)
        self._running: dict[int, list[LoggedCommand]] = {}
        # By the line that they began with, which is told again with what they used.
        self._by_line: dict[bytes, LoggedCommand] = {}
        self._settling: deque[tuple[int, LoggedCommand]] = deque()
        self._last_sync: LoggedCommand | None = None
        self._ready: list[Record] = []
        for command in running:
            self._running.setdefault(command.pid, []).append(command)
            if command.is_completed or command.is_tracked or never_completed(command):
                self._settle(command, command.ended or command.started)

    @property
    def resume_at(self) -> int:
        """Where a later parser goes on: the begin of a block that has not ended yet."""
        return self._rest_at + self._rest.startswith(b"\n")

    @property
    def running(self) -> list[LoggedCommand]:
        """The commands that have begun, and are no record yet."""
        return [each for commands in self._running.values() for each in commands]

    @property
    def loose_ends(self) -> list[LooseEnd]:
        """The ends whose commands are not known, the newest ones if they are many."""
        all_of_them = (each for ends in self._loose_ends.values() for each in ends)
        return sorted(all_of_them, key=lambda each: each.ended)[-MOST_LOOSE_ENDS:]

    def feed(self, data: bytes) -> list[Record]:
        """Return the records that are complete with more bytes of the log.

        The last block counts as soon as another one begins.

        Raises: NotAServerLog.
        """
        text = self._rest + data
        before, *blocks = text.split(_BETWEEN_BLOCKS)
        at = self._rest_at
        if not blocks:
            self._keep(before, at)
            return self._take()
        self._is_log = True
        self._outside(before, at)
        at += len(before)
        is_plain = b"\r" not in text and _OF_SERVER not in text
        for block in blocks[:-1]:
            if is_plain and block.startswith(_INFO):
                self._info(block + b"\n", at + 1)
            else:
                self._block(block + b"\n", at + 1)
            at += len(_BETWEEN_BLOCKS) + len(block)
        self._keep(_BETWEEN_BLOCKS + blocks[-1], at)
        return self._take()

    def close_block(self) -> list[Record]:
        """Return the records that are complete as the last block has ended.

        Raises: NotAServerLog.
        """
        if not self._is_log:
            raise NotAServerLog
        self._cut(len(self._rest) - self._rest.endswith(b"\n"))
        return self._take()

    def finish(self) -> list[Record]:
        """Return what is left, as the log ends here; commands may lack their end.

        Raises: NotAServerLog.
        """
        records = self.close_block()
        for command in self.running:
            self._emit(command)
        return records + self._take()

    def _keep(self, rest: bytes, at: int) -> None:
        self._rest, self._rest_at = rest, at
        if not self._is_log and len(rest) > _HEADER_WITHIN:
            raise NotAServerLog
        if len(rest) > LARGEST_BLOCK:
            self._cut(rest.rfind(b"\n") or len(rest))

    def _cut(self, end: int) -> None:
        """Read the block that has not ended as far as it is known."""
        block, at = self._rest[:end], self._rest_at
        self._rest, self._rest_at = self._rest[end:], at + end
        if block.startswith(_BETWEEN_BLOCKS):
            self._block(block.removeprefix(_BETWEEN_BLOCKS) + b"\n", at + 1)
        else:
            self._outside(block, at)

    def _take(self) -> list[Record]:
        ready, self._ready = self._ready, []
        return ready

    def _outside(self, text: bytes, at: int) -> None:
        for line in _ABOUT_ITSELF.sub(b"", text).split(b"\n"):
            self._other_line(line.removesuffix(b"\r"), at)
        self._about_itself(text, at)

    def _block(self, whole: bytes, at: int) -> None:
        block = whole.replace(b"\r\n", b"\n") if b"\r" in whole else whole
        has_messages = _OF_SERVER in block
        if has_messages:
            block = _ABOUT_ITSELF.sub(b"", block)
        if block.startswith(_INFO):
            self._info(block, at)
        elif block.startswith(_ERROR):
            self._error(block, at)
        else:
            self._outside(_HEADER + block, at)
        if has_messages:
            self._about_itself(whole, at)

    def _about_itself(self, text: bytes, at: int) -> None:
        """Tell of the server's lines about itself, which fall anywhere."""
        for found in _ABOUT_ITSELF.finditer(text):
            time = self._seconds(found[1])
            self._advance(time)
            told = self._text(found[3].removesuffix(b"\r"))
            kind = _ABOUT[found[4]]
            self._ready.append(LogMessage(at, kind, time, told, int(found[2])))

    def _info(self, block: bytes, at: int) -> None:
        position, end = len(_INFO), len(block)
        while position < end:
            line_end = block.find(b"\n", position) + 1 or end
            line = block[position:line_end]
            known = self._by_line.get(line)
            if (
                known is not None
                and block.startswith(b"--- lapse ", line_end)
                and self._awaits_track(known)
            ):
                # What most commands used, without to read their line again.
                self._track(known, block[line_end - 1 :], at)
                self._tracked(known, line)
                return
            found = _EVENT.match(block, position)
            if found is None:
                self._other_line(line.removesuffix(b"\n"), at)
                position = line_end
                continue
            position = found.end()
            if found[3]:
                self._completed(found)
            elif found[6]:
                self._computed(found)
            elif found[15] is None:
                position = self._begun(found, block, position, at)
            else:
                # Its arguments have several lines, of which the first is kept.
                track = block.find(b"\n--- ", position - 1) + 1
                position = self._begun(found, block, track or end, at)

    def _completed(self, found: re.Match[bytes]) -> None:
        time = self._seconds(found[1])
        self._advance(time)
        lapse = float(found[4])
        command = self._latest(int(found[2]), began=time - lapse)
        if command is None:
            usage = (found[5] or b"").decode()
            self._keep_loose(LooseEnd(int(found[2]), time, lapse, usage))
            return
        _end(command, time, lapse, found[5])
        if command.is_tracked:
            self._emit(command)
        else:
            self._settle(command, time)

    def _keep_loose(self, end: LooseEnd) -> None:
        self.counts.ends_without_start += 1
        ends = self._loose_ends.setdefault(end.pid, [])
        ends.append(end)
        del ends[:-_LOOSE_ENDS_OF_ONE]
        if len(self._loose_ends) > MOST_LOOSE_ENDS:
            del self._loose_ends[next(iter(self._loose_ends))]

    def _tie_up(self, command: LoggedCommand) -> None:
        """Give a command the end that was read before its beginning, if one was."""
        ends = self._loose_ends.get(command.pid, [])
        for end in ends:
            if abs(command.started - (end.ended - end.lapse)) <= _ROUNDED:
                ends.remove(end)
                self.counts.ends_without_start -= 1
                # What is told after its end is more exact; there may be less of it.
                lapse = command.lapse if command.is_tracked else end.lapse
                usage = b"" if command.max_rss_kb else end.usage.encode()
                _end(command, end.ended, lapse, usage)
                return

    def _computed(self, found: re.Match[bytes]) -> None:
        self._advance(self._seconds(found[1]))
        command = self._latest(int(found[2]))
        if command is not None:
            command.compute_lapse = float(found[7])
            if command.command == "user-sync":
                self._last_sync = command

    def _begun(
        self, found: re.Match[bytes], block: bytes, position: int, at: int
    ) -> int:
        """Read the start of a command, and what follows it; return where that ends."""
        suffix = found[14] or b""
        if suffix == _REMOVED:
            self._removed(int(found[2]))
            return position
        known = self._by_line.get(found[0])
        if known is not None and self._is_running(known):
            command = known
        else:
            command = self._command(found, at)
            known = self._known(command)
        if trigger := _TRIGGER.match(suffix):
            lapse = _TRIGGER_LAPSE.match(block, position)
            if lapse is None:
                return position
            if known is None:
                self._start(command)
            triggers = (known or command).triggers
            triggers[self._text(trigger[1])] = float(lapse[1])
            return lapse.end()
        if block.startswith(_OF_NO_USE, position):
            position = block.find(b"\n", position) + 1
        if not block.startswith(b"---", position):
            if command is known:
                command = self._command(found, at)
            self._start(command)
            if len(self._by_line) >= _MOST_LINES:
                self._by_line.clear()
            self._by_line[found[0]] = command
            return position
        never_ends = never_completed(command)
        is_last = block.find(b"--- lapse ", position) >= 0
        is_last = is_last or block.find(b"--- usage ", position) >= 0
        if never_ends or (is_last and (known is None or known.is_tracked)):
            if command is known:
                command = self._command(found, at)
            self._start(command, is_over=True)
        elif known is not None:
            command = known
        self._track(command, b"\n" + block[position:], at)
        if is_last:
            self._tracked(command, found[0])
        return len(block)

    def _tracked(self, command: LoggedCommand, line: bytes) -> None:
        """Note that what a command used is told, below this line."""
        self._by_line.pop(line, None)
        command.is_tracked = True
        if command.is_completed:
            self._emit(command)
            return
        if command.ended is None:
            command.ended = command.started + int(command.lapse)
        self._settle(command, self._now)

    def _command(self, found: re.Match[bytes], at: int) -> LoggedCommand:
        arguments = found[13] or found[15] or b""
        if arguments.endswith(b"}"):
            arguments = _JSON_AT_END.sub(b"", arguments)
        text = _name if found[0].isascii() else self._name
        return LoggedCommand(
            at,
            int(found[2]),
            self._seconds(found[1]),
            text(found[8]),
            text(found[9]),
            text(found[10]),
            text(found[11]),
            text(found[12]),
            self._text(arguments.strip()[:_LONGEST_TEXT]),
        )

    def _start(self, command: LoggedCommand, *, is_over: bool = False) -> None:
        """Remember a command; what its process ran before is over."""
        if not is_over:
            self._advance(command.started)
        before = self._running.setdefault(command.pid, [])
        if before and not is_over and not before[-1].is_completed:
            self._settle(before[-1], self._now)
        before.append(command)
        if is_over or never_completed(command):
            self._settle(command, self._now)
        if len(self._running) > _MOST_RUNNING:
            for oldest in list(next(iter(self._running.values()))):
                self._emit(oldest)

    def _removed(self, pid: int) -> None:
        command = self._latest(pid)
        if command is not None:
            command.has_failed = True
            command.ended = command.started
            self._emit(command)

    def _error(self, block: bytes, at: int) -> None:
        body = block[len(_ERROR) :]
        date, pid = _ERROR_DATE.search(body), _ERROR_PID.search(body)
        operation = _ERROR_OPERATION.search(body)
        heads = [each for each in (date, pid, operation) if each is not None]
        text = body[max((each.end() for each in heads), default=0) :]
        time = self._seconds(date[1]) if date else self._now
        number = int(pid[1]) if pid else None
        self.counts.errors += 1
        lines = b"\n".join(line.strip() for line in text.lstrip(b":\n").splitlines())
        self._ready.append(
            LogMessage(
                at,
                MessageKind.ERROR,
                time,
                self._text(lines.strip()[:_LONGEST_TEXT]),
                number,
                self._text(operation[1]) if operation else "",
            )
        )
        command = None if number is None else self._latest(number)
        if command is not None:
            command.has_failed = True

    def _other_line(self, line: bytes, at: int) -> None:
        if not line or line.startswith(_OF_NO_USE):
            return
        found = _ESTIMATES.match(line)
        if found is None:
            self.counts.other_lines += 1
            text = self._text(line[:_LONGEST_TEXT])
            message = LogMessage(at, MessageKind.OTHER, self._now, text)
            self._ready.append(message)
        elif self._last_sync is not None:
            added, updated, deleted, bytes_added, bytes_updated = map(
                int, found.groups()
            )
            self._last_sync.estimated_files_added = added
            self._last_sync.estimated_files_updated = updated
            self._last_sync.estimated_files_deleted = deleted
            self._last_sync.estimated_bytes_added = bytes_added
            self._last_sync.estimated_bytes_updated = bytes_updated

    def _track(self, command: LoggedCommand, text: bytes, at: int) -> None:
        """Read what a command used; the text begins with the end of a line."""
        parts = _TABLE.split(text)
        uses = command.uses
        for index in range(1, len(parts), _OF_TABLE):
            name = _table_name(parts[index])
            use: Numbers = parts[index + 1 : index + _OF_TABLE - 1]
            if name in uses and not name.startswith(_TABLES):
                use = _together(uses[name], use)
            uses[name] = use
        text = b"".join(parts[::_OF_TABLE])
        position, end = 1, len(text)
        while position < end:
            found = _USED.match(text, position)
            if found is not None and found.end() > position:
                position = found.end()
                _use_lines(command, found)
                continue
            line_end = text.find(b"\n", position) + 1 or end
            line = text[position:line_end].removesuffix(b"\n")
            position = line_end
            if not line.startswith(b"--- "):
                self._other_line(line, at)
            elif archive := _TRACK_ARCHIVE.match(line):
                command.archive_read_bytes += _bytes(archive[1], archive[2])
                command.archive_written_bytes += _bytes(archive[3], archive[4])
            elif line.startswith(_FAILED):
                command.has_failed = True

    def _known(self, command: LoggedCommand) -> LoggedCommand | None:
        """Return the newest command that began with the same words."""
        for known in reversed(self._running.get(command.pid, ())):
            if (
                known.started == command.started
                and known.command == command.command
                and known.arguments == command.arguments
                and known.user == command.user
                and known.client == command.client
            ):
                return known
        return None

    def _awaits_track(self, command: LoggedCommand) -> bool:
        """Return whether what a command used, told now, is of this one."""
        return (
            not command.is_tracked
            and self._is_running(command)
            and not never_completed(command)
        )

    def _is_running(self, command: LoggedCommand) -> bool:
        return command in self._running.get(command.pid, ())

    def _latest(self, pid: int, *, began: float | None = None) -> LoggedCommand | None:
        """Return the newest command of a process that has not been completed.

        Of those that another file left open only one that began then, if that is told:
        between the files another command may have begun.
        """
        for command in reversed(self._running.get(pid, ())):
            is_another = (
                command.is_left_open
                and began is not None
                and abs(command.started - began) > _ROUNDED
            )
            if not command.is_completed and not is_another:
                return command
        return None

    def _settle(self, command: LoggedCommand, time: int) -> None:
        """Wait a moment for what the log may still say of a command."""
        self._settling.append((time, command))

    def _advance(self, time: int) -> None:
        if time == self._now:
            return
        if time < self._now - _CLOCK_JUMP:
            self.counts.clock_jumps += 1
        elif time < self._now:
            return
        self._now = time
        settling = self._settling
        while settling and not 0 <= time - settling[0][0] < _SETTLED_AFTER:
            self._emit(settling.popleft()[1])

    def _emit(self, command: LoggedCommand) -> None:
        commands = self._running.get(command.pid, [])
        if command in commands:
            commands.remove(command)
            if not commands:
                del self._running[command.pid]
            if not command.is_completed and not never_completed(command):
                self._tie_up(command)
            self.counts.commands += command.stored is None
            self._ready.append(command)

    def _seconds(self, text: bytes) -> int:
        if text != self._times[0]:
            self._times = (text, _seconds(text))
        return self._times[1]

    def _text(self, data: bytes) -> str:
        return self._counted(data, _decoded(data))

    def _name(self, data: bytes) -> str:
        return self._counted(data, _name(data))

    def _counted(self, data: bytes, text: str) -> str:
        if "\\x" in text and not _is_utf8(data):
            self.counts.not_utf8 += 1
        return text


def _decoded(data: bytes) -> str:
    return storable(data.decode("utf-8", "surrogateescape"))


# Names come again and again; arguments seldom do.
_name = lru_cache(maxsize=20_000)(_decoded)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _seconds(text: bytes) -> int:
    """Return the seconds of 2024/06/19 12:25:31; 0 if there is no such time."""
    try:
        moment = dt.datetime.strptime(f"{text.decode()}Z", "%Y/%m/%d %H:%M:%S%z")
    except ValueError:
        return 0
    # At either end of the calendar no time zone can be applied.
    return int(moment.timestamp()) if 1970 <= moment.year < 2100 else 0


def never_completed(command: LoggedCommand) -> bool:
    """Return whether a server tells the start of such a command, never its end."""
    if command.command == "pull":
        return _PULLS_ON.search(command.arguments) is not None
    return command.command in _NEVER_COMPLETED


def _end(command: LoggedCommand, time: int, lapse: float, usage: bytes | None) -> None:
    command.ended, command.lapse = time, lapse
    command.is_completed = True
    if usage:
        _use(command, usage)


def _use(command: LoggedCommand, text: bytes) -> None:
    (
        command.user_cpu_ms,
        command.system_cpu_ms,
        command.blocks_read,
        command.blocks_written,
        command.messages_in,
        command.messages_out,
        command.max_rss_kb,
        command.page_faults,
    ) = _numbers(text)


@lru_cache(maxsize=1000)
def _numbers(text: bytes) -> tuple[int, ...]:
    """Return the numbers in a text; what a command used is told twice."""
    return tuple(map(int, _NUMBER.findall(text)))


def _together(one: Numbers, other: Numbers) -> TableUse:
    """Return the use of two locks of one kind."""
    return TableUse._make(
        max(mine, theirs) if name.startswith("max_") else mine + theirs
        for name, mine, theirs in zip(
            TableUse._fields, TableUse.of(one), TableUse.of(other), strict=True
        )
    )


@lru_cache(maxsize=10_000)
def _table_name(data: bytes) -> str:
    """Return the table, or the kind of lock without the entity that it is of."""
    name = _decoded(data)
    if name.startswith(_TABLES):
        return name
    name = name.removesuffix("(R)").removesuffix("(W)")
    return name if name.startswith(_NAMED_LOCKS) else name.partition("/")[0]


def _use_lines(command: LoggedCommand, found: re.Match[bytes]) -> None:
    """Take in lines of what a command used, of those that are not about a table."""
    lapse, paused, usage, memory, peak, *rest = found.groups()
    messages_in, messages_out, in_mb, out_mb, send_wait, receive_wait, *files = rest
    if lapse:
        command.lapse = float(lapse)
    if paused:
        command.paused = float(paused)
    if usage:
        _use(command, usage)
    if memory:
        command.memory_mb, command.peak_memory_mb = int(memory), int(peak)
    if messages_in:
        command.rpc_messages_in = int(messages_in)
        command.rpc_messages_out = int(messages_out)
        command.rpc_in_mb, command.rpc_out_mb = int(in_mb), int(out_mb)
        command.rpc_send_wait = float(send_wait or 0)
        command.rpc_receive_wait = float(receive_wait or 0)
    if files[0]:
        (
            command.files_sent,
            command.sent_mb,
            command.files_received,
            command.received_mb,
        ) = map(int, files)


def _bytes(number: bytes, unit: bytes) -> int:
    return int(float(number) * 1024 ** _SIZES[unit])
