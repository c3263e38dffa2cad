"""Rules for the configuration of a Perforce server.

Each looks only at facts, and says what it saw and what it would do. What is not known
is said, and never guessed.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from provisioner.gateways.perforce.releases import maintenance_ends, support_ends
from provisioner.lib.sizes import parse_size, size_text

KIB, MIB = 1 << 10, 1 << 20
BYTES_PER_FILE = 3 * KIB // 2
BYTES_PER_USER = 64 * MIB
# From this release on a server is upgraded in one step.
EASY_UPGRADES = (2019, 1)
NEARLY_FULL_PERCENT = 90
TIMES_OF_COMMANDS = 3
# The guide names no number; an administrator may choose another one for a server.
MANY_PROTECTIONS = 1_000

_VERSION = re.compile(r"/(\d{4})\.(\d+)/\S+ \((\d{4})/(\d\d)/(\d\d)\)")
_GUIDE = "P4 Server Administration Documentation"
_HELP = "p4 configure help"
_TR = "NetApp's technical report on Perforce"


class Outcome(StrEnum):
    ADVICE = "advice"
    UNKNOWN = "unknown"
    GOOD = "good"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A filesystem of the server; `mount_options` is None if they are not known."""

    fs_type: str
    mount_point: str
    percent_used: int
    mount_options: tuple[str, ...] | None = None

    @property
    def is_nfs(self) -> bool:
        return self.fs_type.startswith("nfs")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is known of a server: see ServerConfiguration.

    `places` are the server's own (P4ROOT, …) and those of depots, by name.
    """

    today: dt.date
    version: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    users: int | None = None
    files: int | None = None
    protection_lines: int | None = None
    wide_protections: int | None = None
    wide_paths: tuple[str, ...] = ()
    many_protections: int = MANY_PROTECTIONS
    memory_bytes: int | None = None

    def number(self, name: str) -> int | None:
        """Return a setting as a number (bytes for a size), None if it is not known."""
        text = self.settings.get(name, "")
        try:
            return -parse_size(text[1:]) if text.startswith("-") else parse_size(text)
        except ValueError:
            return None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a rule found: `saw` is what it looked at, `advice` what it would do."""

    outcome: Outcome
    saw: str
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """`code` is stable, `title` for people, `source` where the rule comes from."""

    code: str
    title: str
    source: str
    judge: Callable[[Facts], Verdict]


def good(saw: str) -> Verdict:
    return Verdict(outcome=Outcome.GOOD, saw=saw)


def advice(saw: str, *, do: str) -> Verdict:
    return Verdict(outcome=Outcome.ADVICE, saw=saw, advice=do)


def unknown(saw: str, *, do: str = "") -> Verdict:
    return Verdict(outcome=Outcome.UNKNOWN, saw=saw, advice=do)


# --- one configurable


def _least(name: str, least: int, *, do: str) -> Callable[[Facts], Verdict]:
    """Return a judge that wants a configurable to be at least this much."""

    def judge(facts: Facts) -> Verdict:
        value = facts.number(name)
        if value is None:
            return unknown(f"{name} is not known.")
        saw = f"{name}={facts.settings[name]}"
        return good(saw) if value >= least else advice(saw, do=do)

    return judge


def _zero(name: str, *, do: str) -> Callable[[Facts], Verdict]:
    """Return a judge that wants a configurable to be 0."""

    def judge(facts: Facts) -> Verdict:
        value = facts.number(name)
        if value is None:
            return unknown(f"{name} is not known.")
        saw = f"{name}={facts.settings[name]}"
        return advice(saw, do=do) if value else good(saw)

    return judge


def _network_buffers(facts: Facts) -> Verdict:
    tuned, size = facts.number("net.autotune"), facts.number("net.tcpsize")
    if tuned is None and size is None:
        return unknown("net.autotune and net.tcpsize are not known.")
    if tuned:
        return good("net.autotune=1: the kernel sizes TCP's buffers.")
    saw = f"net.autotune is off, net.tcpsize={facts.settings.get('net.tcpsize', '?')}"
    if size is None or size < 512 * KIB:
        return advice(
            saw, do="Set net.autotune=1, or net.tcpsize=512K for links with latency."
        )
    return good(saw)


def _parallel_threads(facts: Facts) -> Verdict:
    threads, most = (
        facts.number("net.parallel.threads"),
        facts.number("net.parallel.max"),
    )
    if threads is None or most is None:
        return unknown("net.parallel.threads or net.parallel.max is not known.")
    saw = f"net.parallel.threads={threads}, net.parallel.max={most}"
    if threads > most:
        return advice(
            saw,
            do="Set net.parallel.threads no higher than "
            "net.parallel.max, which bounds it.",
        )
    return good(saw)


def _read_only_clients(facts: Facts) -> Verdict:
    place = facts.settings.get("client.readonly.dir")
    if place is None:
        return unknown("client.readonly.dir is not known.")
    if place:
        return good(f"client.readonly.dir={place}")
    return advice(
        "client.readonly.dir is not set.",
        do="Set it, so that clients of builds keep their have lists out of db.have.",
    )


def _command_log(facts: Facts) -> Verdict:
    level, track = facts.number("server"), facts.number("track")
    if level is None or track is None:
        return unknown("The log level (server) or track is not known.")
    saw = f"server={level}, track={track}"
    if level < TIMES_OF_COMMANDS or track == 0:
        return advice(
            saw,
            do="Set server=3 and track=1: then the log says how long each command took "
            "and which tables it held.",
        )
    return good(saw)


# --- memory and release


def _memory(facts: Facts) -> Verdict:
    needs = [
        count * each
        for count, each in (
            (facts.files, BYTES_PER_FILE),
            (facts.users, BYTES_PER_USER),
        )
        if count is not None
    ]
    if facts.memory_bytes is None:
        return unknown(
            "No worker runs on the server's host, so its memory is not known.",
            do=f"The guide asks for at least {size_text(max(needs))}." if needs else "",
        )
    has = f"{size_text(facts.memory_bytes)} of memory"
    if len(needs) < 2:
        return unknown(
            f"{has}; the server does not say how many users or files it has."
        )
    saw = f"{has}, {facts.users:,} users, {facts.files:,} files"
    if facts.memory_bytes >= max(needs):
        return good(saw)
    return advice(
        saw,
        do=f"Give it {size_text(max(needs))}: 1.5 KB a file or 64 MB a user, whichever "
        "is more, so that its tables stay in the cache.",
    )


def _release(facts: Facts) -> Verdict:
    found = _VERSION.search(facts.version)
    if found is None:
        return unknown(f"{facts.version or 'Its version'} is not understood.")
    year, number, *day = map(int, found.groups())
    saw = f"{year}.{number}, built on {dt.date(*day).isoformat()}"
    if (year, number) < EASY_UPGRADES:
        return advice(
            saw,
            do="Upgrade it; releases before 2019.1 need special steps, and space for "
            "another db.rev.",
        )
    release = f"{year}.{number}"
    _, supported = support_ends(release)
    earliest, latest = maintenance_ends(release)
    if facts.today > supported:
        return advice(saw, do=f"Upgrade it: Perforce's support ended by {supported}.")
    if facts.today > latest:
        return advice(saw, do=f"Upgrade it: it has had no updates since {latest}.")
    if facts.today > earliest:
        return unknown(
            f"{saw}. Its updates end between {earliest} and {latest}: the schedule "
            "that we read ends before it."
        )
    return good(saw)


def _split(facts: Facts) -> Verdict:
    """Judge whether tables are on a local disk and archives on NFS."""
    root, journal = facts.places.get("P4ROOT"), facts.places.get("P4JOURNAL")
    depots = {name: at for name, at in facts.places.items() if name not in _OWN}
    if root is None or journal is None or not depots:
        return unknown("It is not known where P4ROOT, P4JOURNAL and the depots are.")
    local = sorted(name for name, at in depots.items() if not at.is_nfs)
    saw = (
        f"P4ROOT: {root.fs_type}, P4JOURNAL: {journal.fs_type}, depots: "
        f"{', '.join(sorted({at.fs_type for at in depots.values()}))}"
    )
    if root.is_nfs and _root(facts).outcome != Outcome.GOOD:
        return advice(
            saw,
            do="Keep tables and journal on a local disk or a LUN, and archives alone "
            "on NFS: every command waits for the tables, few for archives.",
        )
    if local:
        return good(f"{saw}. Archives on NFS would leave its own disks to the tables.")
    return good(saw)


def judge_protections(facts: Facts) -> Verdict:
    """Judge how long the protections are, and how wide."""
    lines, wide = facts.protection_lines, facts.wide_protections
    if lines is None or wide is None:
        return unknown("Reading its protections takes super.")
    saw = f"{lines:,} lines, {wide:,} of them with a wildcard before their end"
    if wide:
        return advice(
            f"{saw}: {', '.join(facts.wide_paths[:3])}.",
            do="Name directories, and grant to groups: each path of each command is "
            "matched with every line.",
        )
    if lines >= facts.many_protections:
        return advice(
            saw, do="Grant to groups, and delete lines that others make superfluous."
        )
    return good(saw)


# --- filesystems

_OWN = ("P4ROOT", "P4JOURNAL", "P4LOG", "TEMP")


def _root(facts: Facts) -> Verdict:
    place = facts.places.get("P4ROOT")
    if place is None:
        return unknown("It is not known where P4ROOT is.")
    saw = f"P4ROOT is on {place.mount_point} ({place.fs_type})."
    if not place.is_nfs:
        return good(saw)
    if place.mount_options is None:
        return unknown(
            f"{saw} Its mount options are not known.",
            do="Run a worker on the server's host, or look there: NFSv3 with nocto and "
            "local_lock=all is for a volume that one host mounts.",
        )
    options = place.mount_options
    saw = f"{saw} Mounted with {','.join(options)}."
    if "vers=3" not in options:
        return advice(
            saw,
            do="Move P4ROOT to a local disk, or to NFSv3 with nocto,local_lock=all if "
            "no other host mounts it.",
        )
    missing = [name for name in ("nocto", "local_lock=all") if name not in options]
    if missing:
        return advice(
            saw,
            do=f"Add {' and '.join(missing)} if no other host mounts it: never for "
            "volumes that two hosts may write.",
        )
    return good(f"{saw} That is right as long as no other host mounts it.")


def _journal(facts: Facts) -> Verdict:
    root, journal = facts.places.get("P4ROOT"), facts.places.get("P4JOURNAL")
    if (
        root is None
        or journal is None
        or not (root.mount_point and journal.mount_point)
    ):
        return unknown("It is not known where P4ROOT and P4JOURNAL are.")
    saw = f"P4ROOT is on {root.mount_point}, P4JOURNAL on {journal.mount_point}."
    if root.mount_point != journal.mount_point:
        return good(saw)
    return advice(
        saw,
        do="Put the journal on another volume: if both are lost, changes are lost too.",
    )


def _depots(facts: Facts) -> Verdict:
    root = facts.places.get("P4ROOT")
    depots = {name: at for name, at in facts.places.items() if name not in _OWN}
    if root is None or not root.mount_point or not depots:
        return unknown("It is not known where P4ROOT and the depots are.")
    beside = sorted(n for n, at in depots.items() if at.mount_point == root.mount_point)
    if not beside:
        return good(f"No depot is on {root.mount_point}, where P4ROOT is.")
    named = ", ".join(beside[:3]) + (f" and {len(beside) - 3} more" * (len(beside) > 3))
    return advice(
        f"On {root.mount_point}, where P4ROOT is: {named}.",
        do="Put archives on volumes of their own: they grow differently, and syncs "
        "that read them do not slow the tables.",
    )


def _log_place(facts: Facts) -> Verdict:
    place, level = facts.places.get("P4LOG"), facts.number("server")
    if place is None or level is None:
        return unknown("It is not known where P4LOG is, or its level.")
    saw = f"P4LOG is on {place.mount_point} ({place.fs_type}), server={level}"
    if place.is_nfs and level >= TIMES_OF_COMMANDS:
        return advice(
            saw, do="Write the log to a local disk: at this level each command waits."
        )
    return good(saw)


def _fullness(facts: Facts) -> Verdict:
    if not facts.places:
        return unknown("It is not known how full its filesystems are.")
    full = [
        f"{name} {at.percent_used} %"
        for name, at in facts.places.items()
        if at.percent_used >= NEARLY_FULL_PERCENT
    ]
    if full:
        return advice(
            f"Nearly full: {', '.join(full)}.",
            do="Make room. Below filesys.*.min the server refuses commands.",
        )
    fullest = max(at.percent_used for at in facts.places.values())
    return good(f"The fullest of its filesystems is {fullest} % full.")


RULES: tuple[Rule, ...] = (
    Rule(
        code="memory",
        title="Memory",
        source=f"{_GUIDE}, System requirements",
        judge=_memory,
    ),
    Rule(
        code="release",
        title="Release",
        source=f"{_GUIDE}, upgrades before 2019.1; Helix Core APIs EOL Schedule",
        judge=_release,
    ),
    Rule(
        code="root",
        title="Volume of P4ROOT",
        source=f"{_GUIDE}; {_TR} for NFS",
        judge=_root,
    ),
    Rule(
        code="journal",
        title="Volume of the journal",
        source=f"{_GUIDE}, Journal files",
        judge=_journal,
    ),
    Rule(code="depots", title="Volumes of depots", source=_TR, judge=_depots),
    Rule(code="split", title="Split of tables and archives", source=_TR, judge=_split),
    Rule(
        code="protections",
        title="Protections",
        source="Perforce's knowledge base, Maximizing Perforce Performance",
        judge=judge_protections,
    ),
    Rule(
        code="parallel_threads",
        title="Parallel syncs of people",
        source=f"{_HELP} net.parallel.threads",
        judge=_parallel_threads,
    ),
    Rule(code="log_place", title="Place of the log", source=_TR, judge=_log_place),
    Rule(
        code="fullness", title="Space", source=f"{_GUIDE}, Disk space", judge=_fullness
    ),
    Rule(
        code="command_log",
        title="Log of commands",
        source=f"{_HELP} server, {_HELP} track",
        judge=_command_log,
    ),
    Rule(
        code="monitor",
        title="Monitoring",
        source=f"{_HELP} monitor",
        judge=_least(
            "monitor", 1, do="Set monitor=1: without it nobody sees what runs."
        ),
    ),
    Rule(
        code="peeking",
        title="Reading without locks",
        source=f"{_HELP} db.peeking",
        judge=_least(
            "db.peeking",
            2,
            do="Set db.peeking=2 and restart the server, so that readers do not wait.",
        ),
    ),
    Rule(
        code="sync_locks",
        title="Lock of the client in a sync",
        source=f"{_HELP} server.locks.sync",
        judge=_zero(
            "server.locks.sync",
            do="Set server.locks.sync=0, the default, if large syncs are common or "
            "interrupted: each holds the lock of its client as long as it runs.",
        ),
    ),
    Rule(
        code="parallel",
        title="Parallel syncs",
        source=f"{_HELP} net.parallel.max",
        judge=_least(
            "net.parallel.max",
            2,
            do="Set net.parallel.max, to 8 for example: templates sync over several "
            "connections then.",
        ),
    ),
    Rule(
        code="buffers",
        title="Buffers of files",
        source=f"{_HELP} filesys.bufsize",
        judge=_least("filesys.bufsize", 64 * KIB, do="Set filesys.bufsize=64K."),
    ),
    Rule(
        code="network_buffers",
        title="Buffers of the network",
        source=f"{_HELP} net.autotune",
        judge=_network_buffers,
    ),
    Rule(
        code="longest_wait",
        title="Clients that are silent",
        source=f"{_HELP} net.maxwait",
        judge=_zero(
            "net.maxwait",
            do="Set net.maxwait=0: a large flush says nothing for minutes, "
            "and would be cut off.",
        ),
    ),
    Rule(
        code="most_commands",
        title="Commands at a time",
        source=f"{_GUIDE}, Limiting simultaneous connections",
        judge=_least(
            "server.maxcommands",
            1,
            do="Set server.maxcommands 200 to 500 % above the usual peak, and restart "
            "the server: a storm of commands is refused then before the host runs out "
            "of memory. It takes monitor=1.",
        ),
    ),
    Rule(
        code="read_only_clients",
        title="Clients of builds",
        source=f"{_HELP} client.readonly.dir",
        judge=_read_only_clients,
    ),
)

# What the rules look at, so that it is read.
CONFIGURABLES = (
    *("client.readonly.dir", "db.peeking", "filesys.bufsize", "monitor"),
    *("net.autotune", "net.maxwait", "net.parallel.max", "net.parallel.threads"),
    *("net.tcpsize", "server"),
    *("server.locks.sync", "server.maxcommands", "track"),
)


def judged(facts: Facts) -> list[tuple[Rule, Verdict]]:
    """Return every rule with what it found: advice first, then what is not known."""
    found = [(rule, rule.judge(facts)) for rule in RULES]
    return sorted(found, key=lambda pair: list(Outcome).index(pair[1].outcome))
