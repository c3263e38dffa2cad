"""A lab server behind the command line of p4d, for those who start p4d by its path.

    launcher(path, release="2024.2") writes the program; then PATH is given as p4d is:

    p4d -V                                      version
    p4d -r ROOT [-p PORT] [-J FILE] [-L FILE] [-C1] [-d]         serve
    p4d -r ROOT [-z] -jd FILE [TABLE …]         dump a checkpoint, and FILE.md5
    p4d -r ROOT [-z] [-f] -jr FILE              replay a checkpoint or journal
    p4d -r ROOT -xD [ID] | -xi | -xu            name it, Unicode mode, upgrade
    p4d -r ROOT -cshow | -cset N=V | -cunset N  settings of a server that is stopped
    p4d -r ROOT -c COMMAND                      run a command while nothing can write

The root holds the database, `server.id`, and the files of depots unless the setting
server.depot.root names another place. The journal is made and stays empty but for its
first note: the lab's database has a log of its own. A root keeps its release: an older
one is not served before `-xu`, a newer one never.

Source: p4d of the command reference; "Database is at old upgrade level" and the
configuration commands in p4 help; `p4d -h`; "Checkpoint files" of the administrator's
guide for the MD5, which is that of the plain text by "Uncompress a checkpoint in
Windows" of Perforce's knowledge base. Inferred: the words of `-cshow` and of the MD5's
file, the numbers of upgrade levels, and what p4d says of a database that is newer than
itself, and of a checkpoint that is there already.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from provisioner.lab.perforce.__main__ import configure_log, serve_tcp
from provisioner.lab.perforce.checkpoint import write_checkpoint
from provisioner.lab.perforce.configurables import Configurables, stored_name
from provisioner.lab.perforce.database import CaseMismatch, Database
from provisioner.lab.perforce.journal import JournalError, records
from provisioner.lab.perforce.restore import restore
from provisioner.lab.perforce.state import (
    RELEASE,
    PerforceConfig,
    database_path,
    initialize,
    open_state,
)

_SERVER_ID = "server.id"
_LEVEL = "upgrade"
_STARTS_WITHIN_SECONDS = 30.0
_WHOLE_OPTIONS = ("-cshow", "-cset", "-cunset")
_VALUED = frozenset({"-r", "-p", "-J", "-L", "-jd", "-jr", "-c", "-cset", "-cunset"})
_VALUED |= {"-k", "-v", "--lab-release"}
_ALONE = frozenset({"-V", "-d", "-q", "-z", "-f", "-C0", "-C1", "-xi", "-xu", "-cshow"})


class Refusal(Exception):
    """What p4d says on standard error before it ends with 1."""


@dataclass(kw_only=True)
class Options:
    """The words of a command line: each option with its value, and the rest."""

    given: dict[str, str] = field(default_factory=dict)
    rest: list[str] = field(default_factory=list)

    def has(self, name: str) -> bool:
        return name in self.given


def launcher(path: Path, *, release: str = RELEASE) -> Path:
    """Write a program that is p4d of a release to those who start it; return its path.

    It can be started as any user who may read our code.
    """
    code = Path(__file__).resolve().parents[3]
    path.write_text(
        "#!/bin/sh\n"
        f"PYTHONPATH='{code}' exec '{_interpreter()}' -B -m"
        f' provisioner.lab.perforce.p4d --lab-release={release} "$@"\n'
    )
    path.chmod(0o755)
    return path


def _interpreter() -> str:
    """Return ours, or one of the system that every user may start.

    The server needs no package beside the standard library.
    """
    places = [*Path(sys.executable).parents, *Path(sys.executable).resolve().parents]
    if all(place.stat().st_mode & stat.S_IXOTH for place in places):
        return sys.executable
    return shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable


def parse(words: Sequence[str]) -> Options:
    """Return the options of a command line. Raises: Refusal."""
    options, left = Options(), list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if word == "-xD":
            options.given[word] = left.pop(0) if left else ""
        elif word in _ALONE:
            options.given[word] = ""
        elif equals and name == "--lab-release":
            options.given[name] = value
        elif word in _VALUED and left:
            options.given[word] = left.pop(0)
        elif word.startswith("-"):
            raise Refusal(f"Perforce server error:\n\tInvalid option: {word}.")
        else:
            options.rest.append(word)
    return options


def main(words: Sequence[str]) -> int:
    """Do what a command line of p4d says; return the exit status."""
    try:
        return _run(parse(words), words)
    except (Refusal, CaseMismatch, JournalError, OSError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(options: Options, words: Sequence[str]) -> int:
    release = options.given.get("--lab-release", RELEASE)
    if options.has("-V"):
        version = f"P4D/LINUX26X86_64/{release}/9999999 (2026/01/01)"
        print(
            f"Perforce - The Fast Software Configuration Management System.\n{version}."
        )
        print(f"Rev. {version}.")
        return 0
    if not options.has("-r"):
        raise Refusal("Perforce server error:\n\tNo root: give -r.")
    root = Path(options.given["-r"]).resolve()
    if not root.is_dir():
        raise Refusal(f"Perforce server error:\n\tcd: {root}: No such directory.")
    config = _config(root, options, release=release)
    if options.has("-xD"):
        return _name(root, options.given["-xD"])
    if any(options.has(name) for name in _WHOLE_OPTIONS):
        return _settings(config, options)
    if options.has("-jr"):
        return _replay(config, Path(options.given["-jr"]), may_add=options.has("-f"))
    if options.has("-jd"):
        return _dump(config, options)
    if options.has("-xi"):
        with _opened(config) as database, database.writing():
            database.set_counter("unicode", "1")
        print("Server switched to Unicode mode.")
        return 0
    if options.has("-xu"):
        return _upgrade(config)
    if options.has("-c"):
        return _locked(config, options.given["-c"])
    return _start_in_background(words) if options.has("-d") else _serve(config, options)


def _config(root: Path, options: Options, *, release: str) -> PerforceConfig:
    host, _, port = options.given.get("-p", "1666").rpartition(":")
    server_id = _server_id(root)
    config = PerforceConfig(
        root=root,
        host=host.strip("[]") or "0.0.0.0",  # noqa: S104 - as p4d does
        port=int(port),
        ignores_case=options.has("-C1"),
        server_id=server_id,
        release=release,
    )
    if not database_path(root).exists():
        return config
    database = Database(database_path(root))
    try:
        database.create_tables()
        stored = Configurables(database, given={}).stored()
        is_unicode = database.counter("unicode") not in ("", "0")
    finally:
        database.close()
    depots = stored.get(f"{server_id}#server.depot.root") or stored.get(
        "server.depot.root"
    )
    return replace(
        config,
        is_unicode=is_unicode,
        depot_root=root / depots if depots else None,
        target=stored.get("P4TARGET", ""),
    )


def _server_id(root: Path) -> str:
    try:
        return (root / _SERVER_ID).read_text().strip()
    except FileNotFoundError:
        return ""


@contextlib.contextmanager
def _opened(config: PerforceConfig) -> Iterator[Database]:
    initialize(config)
    state = open_state(config)
    try:
        yield state.database
    finally:
        state.database.close()


def _name(root: Path, server_id: str) -> int:
    if server_id:
        (root / _SERVER_ID).write_text(f"{server_id}\n")
    print(f"Server ID: {_server_id(root)}")
    return 0


def _settings(config: PerforceConfig, options: Options) -> int:
    with _opened(config) as database:
        settings = Configurables(database, given={})
        if options.has("-cset"):
            name, equals, value = options.given["-cset"].partition("=")
            if not equals:
                raise Refusal("Usage: -cset [serverid#]name=value")
            settings.set(stored_name(name), value)
        elif options.has("-cunset"):
            settings.set(stored_name(options.given["-cunset"]), None)
        else:
            for name, value in settings.stored().items():
                server, _, bare = name.rpartition("#")
                print(f"{server or 'any'}: {bare} = {value}")
    return 0


def _dump(config: PerforceConfig, options: Options) -> int:
    path = Path(options.given["-jd"])
    if path.exists():
        raise Refusal(f"Perforce server error:\n\topen for write: {path}: File exists.")
    print(f"Dumping to {path}...", flush=True)
    only = [*options.rest, *options.given.get("-k", "").split(",")]
    with _opened(config) as database:
        left = write_checkpoint(
            database,
            path,
            admin_user=config.admin_user,
            tables=[table for table in only if table],
            is_compressed=options.has("-z"),
        )
    if left:
        print(f"Not part of a checkpoint of the lab: {', '.join(left)}.")
    _write_digest(path, is_compressed=options.has("-z"))
    return 0


def _write_digest(path: Path, *, is_compressed: bool) -> None:
    """Write the MD5 of a checkpoint's plain text beside it."""
    digest = hashlib.md5(usedforsecurity=False)
    opener: Callable[..., Any] = gzip.open if is_compressed else open
    with opener(path, "rb") as plain:
        while data := plain.read(1 << 20):
            digest.update(data)
    said = f"MD5 ({path.name}) = {digest.hexdigest().upper()}\n"
    path.with_name(f"{path.name}.md5").write_text(said)


def _replay(config: PerforceConfig, path: Path, *, may_add: bool) -> int:
    """Replay a file; a checkpoint only into a root that has no database."""
    is_checkpoint = any(record.table == "db.counters" for record in records(path))
    if is_checkpoint and database_path(config.root).exists() and not may_add:
        raise Refusal(
            "Perforce server error:\n\tJournal file is a checkpoint; database is not "
            "empty. Use -f to replay it nevertheless."
        )
    print(f"Recovering from {path}...", flush=True)
    result = restore(config, checkpoint=path)
    for table, count in sorted(result.not_understood.items()):
        print(f"{count} rows of {table} were not understood.")
    return 0


def level_of(release: str) -> int:
    """Return the upgrade level of a release; the numbers are the lab's own."""
    year, _, minor = release.partition(".")
    return (int(year) - 2000) * 10 + int(minor)


def _upgrade(config: PerforceConfig) -> int:
    with _opened(config) as database:
        before, wanted = _level(database), level_of(config.release)
        if before > wanted:
            raise Refusal(_newer(before))
        with database.writing():
            database.set_counter(_LEVEL, str(wanted))
    print(f"...upgrading from level {before} to level {wanted}.\n...upgrade finished.")
    return 0


def _level(database: Database) -> int:
    return int(database.counter(_LEVEL)) or level_of(RELEASE)


def _newer(level: int) -> str:
    return (
        "Perforce server error:\n"
        f"\tDatabase is at upgrade level {level}, which is newer than this server."
    )


def _check_level(config: PerforceConfig) -> None:
    with _opened(config) as database:
        level, wanted = _level(database), level_of(config.release)
        if level > wanted:
            raise Refusal(_newer(level))
        if level < wanted:
            raise Refusal(
                "Perforce server error:\n"
                f"\tDatabase is at old upgrade level {level}. Use 'p4d -r "
                f"{config.root} -xu' to upgrade to level {wanted}."
            )
        with database.writing():
            database.set_counter(_LEVEL, str(level))


def _locked(config: PerforceConfig, command: str) -> int:
    with _opened(config) as database, database.writing():
        return subprocess.run(command, shell=True).returncode  # noqa: S602 - as p4d does


def _start_in_background(words: Sequence[str]) -> int:
    """Start the server in a session of its own, and end once it listens."""
    arguments = [word for word in words if word != "-d"]
    command = [sys.executable, "-B", "-m", "provisioner.lab.perforce.p4d", *arguments]
    started = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert started.stdout is not None
    assert started.stderr is not None
    signal.alarm(int(_STARTS_WITHIN_SECONDS))
    if started.stdout.readline():
        return 0
    sys.stderr.buffer.write(started.stderr.read())
    return started.wait() or 1


def _serve(config: PerforceConfig, options: Options) -> int:
    _check_level(config)
    log = options.given.get("-L")
    config = replace(config, log=config.root / log if log else None)
    configure_log(config.log)
    journal = config.root / options.given.get("-J", "journal")
    if not journal.exists():
        note = f"@nx@ 0 {int(time.time())} @1@ 2 0 0 0 0 @{config.root}@ @@ @@ @@ @@ \n"
        journal.write_text(note)
    sys.stdin.close()
    os.chdir(config.root)
    try:
        return serve_tcp(config)
    except OSError as error:
        port = options.given.get("-p", "1666")
        raise Refusal(
            f"Perforce server error:\n\tListen {port} failed.\n\tTCP listen on {port} "
            f"failed.\n\tbind: {port}: {os.strerror(error.errno or 0)}"
        ) from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
