"""Logs of a Perforce server, as it writes them."""

from __future__ import annotations

START = (
    "2026/11/23 09:00:{second:02} pid {pid} ann@ann-main 10.5.7.21 "
    "[p4/2025.1/LINUX26X86_64/2700001] '{words}'"
)


def info(*lines: str) -> str:
    """Return one block of the log."""
    return "Perforce server info:\n" + "".join(f"{line}\n" for line in lines)


def start(pid: int, words: str, *, second: int = 0) -> str:
    return "\t" + START.format(pid=pid, words=words, second=second)


def end(pid: int, lapse: str, *, second: int = 1) -> str:
    used = "12+3us 8+16io 0+0net 4096k 2pf"
    return f"\t2026/11/23 09:00:{second:02} pid {pid} completed {lapse}s {used}"


def whole(pid: int, words: str, *track: str, lapse: str = ".5", second: int = 0) -> str:
    """Return the three blocks of a command: begin, end, and what it used."""
    begin = start(pid, words, second=second)
    return (
        info(begin)
        + info(end(pid, lapse, second=second + 1))
        + info(begin, f"--- lapse {lapse}s", *track)
        + "\n"
    )


SYNC = whole(
    410,
    "user-sync -q //depot/main/...",
    "--- paused 1.20s",
    "--- usage 598+67us 304+5io 1+2net 68864k 3pf",
    "--- memory cmd/proc 74mb/80mb",
    "--- rpc msgs/size in+out 2+84225/1mb+45mb himarks 795416/795272 snd/rcv 5.6s/.02s",
    "--- filetotals (svr) send/recv files+bytes 25+1862mb/1+2mb",
    "--- db.have",
    "---   pages in+out+cached 14+6+2",
    "---   pages split internal+leaf 0+1",
    "---   locks read/write 4/5 rows get+pos+scan put+del 7+8+9 2+1",
    "---   total lock wait+held read/write 10ms+20ms/30ms+40ms",
    "---   max lock wait+held read/write 1ms+2ms/3ms+4ms",
    "---   peek count 6 wait+held total/max 7ms+8ms/0ms+0ms",
    "--- clients/ann%2Dmain(W)",
    "---   total lock wait+held read/write 0ms+0ms/0ms+1367ms",
    "--- clients/ann%2Dmain(R)",
    "---   total lock wait+held read/write 5ms+0ms/0ms+-25ms",
    "--- meta/db(R)",
    "---   total lock wait+held read/write 0ms+31ms/0ms+0ms",
    "--- lbr Rcs",
    "---   opens+closes+checkins+exists 1+1+0+0",
    "---   reads+readbytes+writes+writebytes 2+1.5K+1+20",
    "---   digests+filesizes+modtimes+copies 0+0+0+0",
    lapse="8.39",
)
ERROR = (
    "Perforce server error:\n\tDate 2026/11/23 09:00:03:\n\tPid 77\n"
    "\tOperation: user-resolved\n\t/home/ann/ws/... - no file(s) resolved.\n"
)
THREADS = (
    "2026/11/23 09:00:02 731966731 pid 24961: Server is now using 148 active threads.\n"
)
PRESSURE = (
    "2026/11/23 09:00:04 004246895 pid 24961: Server under resource pressure.  "
    "Pause rate CPU 59%, mem 0%, CPU pressure 2, mem pressure 0\n"
)
MIXED = (
    SYNC
    + info(start(77, "user-resolved"))
    + ERROR
    + THREADS
    + info(end(77, ".01", second=3))
    + PRESSURE
    + info(start(78, "user-change -i", second=4))
    + info(
        start(78, "user-change -i", second=4) + " trigger swarm.change", "lapse .044s"
    )
    + info(end(78, ".2", second=4))
    + whole(79, "user-info", second=9)
    + info(start(79, "user-files //caf\udce9/...", second=20))
)
