"""A Perforce server on this host, from the root directory of a copy.

The program is named by its path, and started by the unprivileged user who owns the
copy. Whatever it starts inherits a variable with the copy's tag, by which its processes
are found again, whoever has started them and whether or not it wrote down its number.

Source: p4d of the command reference (-r, -p, -J, -L, -d, -V, -xD, -cshow, -cset,
-cunset, -jd, -jr, and -z before them); "Database is at old upgrade level" of p4 help
upgrades. `-cshow` prints lines as in "any: monitor = 1".
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from provisioner.gateways.errors import Busy, Refused
from provisioner.gateways.fence import require_leave
from provisioner.gateways.perforce.releases import p4d_release_in

TAG = "CLONEYARD_SANDBOX"
PATH = "/usr/local/bin:/usr/bin:/bin"
WITHIN_SECONDS = 120.0
ENDS_WITHIN_SECONDS = 30.0
LOOKS_EVERY_SECONDS = 0.1
ASKS_EVERY_SECONDS = 1.0
SHOWN_CHARACTERS = 500
_SETTING = re.compile(r"(?P<server>[^:\s]+): (?P<name>[^=\s]+)\s*=\s*(?P<value>.*)")
_RECORD = re.compile(rb"^@(?:pv|rv)@ ", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class StoredSetting:
    """A configurable that a database holds, for one ServerID or for `any`."""

    server: str
    name: str
    value: str

    @property
    def full_name(self) -> str:
        return f"{self.server}#{self.name}"


@dataclass(frozen=True, kw_only=True)
class P4d:
    """A program p4d, with the root, journal and log of one server.

    `tag` marks its processes. Without root it runs as this process does.
    """

    program: str
    root: Path
    journal: Path
    log: Path
    uid: int
    gid: int
    tag: str
    ignores_case: bool = False

    def release(self) -> str:
        """Return the release of the program, such as "2024.2".

        Raises: Refused (no program there, or it is not p4d).
        """
        said = self._run("-V", root=False)
        if not (release := p4d_release_in(said)):
            raise self._refused("-V", f"{self.program} does not say which p4d it is.")
        return release

    def settings(self) -> list[StoredSetting]:
        """Return the configurables that the database holds."""
        lines = map(_SETTING.fullmatch, self._run("-cshow").splitlines())
        return [StoredSetting(**found.groupdict()) for found in lines if found]

    def set(self, name: str, value: str) -> None:
        """Set a configurable for any server. Safe to repeat."""
        self._run("-cset", f"any#{name}={value}")

    def unset(self, setting: StoredSetting) -> None:
        """Remove a configurable. Safe to repeat."""
        self._run("-cunset", setting.full_name)

    def give_id(self, server_id: str) -> None:
        """Give the root a ServerID of its own, in place of any other."""
        self.remove("server.id")
        self._run("-xD", server_id)

    def links_out(
        self, directory: Path, *, within: Sequence[Path], deep: int
    ) -> list[str]:
        """Return the links in a directory that lead out of these ones, as paths in it.

        The directory itself counts, as ".". It looks into `deep` levels of directories.
        """
        homes = [home.resolve() for home in within]

        def leads_out(path: Path) -> bool:
            real = path.resolve()
            return not any(real.is_relative_to(home) for home in homes)

        if leads_out(directory):
            return ["."]
        found, level = [], [directory]
        for _ in range(deep):
            level, above = [], level
            for parent in above:
                with os.scandir(parent) as entries:
                    for entry in entries:
                        path = Path(entry.path)
                        if entry.is_symlink() and leads_out(path):
                            found.append(str(path.relative_to(directory)))
                        elif entry.is_dir(follow_symlinks=False):
                            level.append(path)
        return sorted(found)

    def dump(self, table: str, *, scratch: str) -> bytes:
        """Return the rows of a table as records of a journal.

        `scratch` names a file in the root, for as long as this takes.
        """
        path = self.root / scratch
        self.remove(scratch)
        self._run("-k", table, "-jd", str(path))
        dumped = path.read_bytes()
        self.remove(scratch, f"{scratch}.md5")
        return dumped

    def remove(self, *names: str) -> list[str]:
        """Remove entries of the root, as its owner; return those that were there."""
        there = [name for name in names if os.path.lexists(self.root / name)]
        if there:
            self._command("rm", "-rf", "--", *(str(self.root / name) for name in there))
        return there

    def remove_rows(self, table: str, *, scratch: str) -> int:
        """Remove all rows of a table of the database; return how many there were.

        They are dumped, and replayed as deletions. `scratch` names a file in the root.
        """
        path = self.root / scratch
        dumped = self.dump(table, scratch=scratch)
        rows = len(_RECORD.findall(dumped))
        if rows:
            deletions = _RECORD.sub(b"@dv@ ", dumped)
            self._command("tee", str(path), told=deletions)
            self._run("-jr", str(path))
        self.remove(scratch)
        return rows

    def replay(self, path: Path) -> None:
        """Replay a journal into the database. Safe to repeat.

        Raises: Refused (it is torn, or newer than the program).
        """
        self._run("-jr", str(path))

    def checkpoint(self, path: Path, *, within_seconds: float) -> None:
        """Dump the database into a compressed file, which must not be there yet.

        The journal is not rotated. The MD5 is written beside it, into `path`.md5.

        Raises: Refused (no room, the file is there, …), Busy (too slow).
        """
        self._run("-z", "-jd", str(path), within_seconds=within_seconds)

    def restore(self, path: Path, *, within_seconds: float) -> None:
        """Replay a compressed checkpoint into a root without a database.

        Raises: Refused (no room, torn, there is a database, …), Busy (too slow).
        """
        self._run("-z", "-jr", str(path), within_seconds=within_seconds)

    def upgrade(self, *, within_seconds: float) -> None:
        """Bring the database to the release of the program. Safe to repeat.

        Raises: Refused (it is newer), Busy (too slow).
        """
        self._run("-xu", journal=str(self.journal), within_seconds=within_seconds)

    def start(self, port: str) -> None:
        """Start the server in the background; it may take a while to answer.

        Raises: Refused (port in use, old database, …) in the program's own words.
        """
        self._run("-p", port, "-d", journal=str(self.journal))

    def processes(self) -> list[int]:
        """Return the processes of this server on this host."""
        wanted, found = f"{TAG}={self.tag}".encode(), []
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                environment = Path("/proc", name, "environ").read_bytes()
                if wanted in environment.split(b"\0") and int(name) != os.getpid():
                    found.append(int(name))
        return found

    def stop(self) -> None:
        """End every process of this server. One that has none is success.

        Raises: Busy (one does not end).
        """
        for number, patience in (
            (signal.SIGTERM, ENDS_WITHIN_SECONDS),
            (signal.SIGKILL, ENDS_WITHIN_SECONDS),
        ):
            for process in self.processes():
                require_leave()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, number)
            ends = time.monotonic() + patience
            while time.monotonic() < ends:
                if not self.processes():
                    return
                time.sleep(LOOKS_EVERY_SECONDS)
        raise Busy(
            f"A process of the sandbox's server does not end: {self.processes()}.",
            system="host",
            operation="stop p4d",
        )

    def _run(
        self,
        *words: str,
        root: bool = True,
        journal: str = "off",
        within_seconds: float = WITHIN_SECONDS,
    ) -> str:
        case = ("-C1",) if self.ignores_case else ()
        # Without -J and -L it writes where the copy's settings say: to the original.
        logs = ("-J", journal, "-L", str(self.log))
        where = ("-r", str(self.root), *logs, *case) if root else ()
        return self._command(
            self.program, *where, *words, within_seconds=within_seconds
        )

    def _command(
        self, *command: str, told: bytes = b"", within_seconds: float = WITHIN_SECONDS
    ) -> str:
        """Run a command as the owner; return what it says.

        Raises: Refused (it cannot be run, or failed), Busy (too slow).
        """
        require_leave()
        is_root = os.geteuid() == 0
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env=self._environment(),
                umask=0o027,
                user=self.uid if is_root else None,
                group=self.gid if is_root else None,
                extra_groups=() if is_root else None,
            )
        except OSError as error:
            raise self._refused(
                _what(command),
                f"{command[0]} cannot be run: {os.strerror(error.errno or 0)}.",
            ) from error
        output, errors = _followed(
            process, command, told, within_seconds=within_seconds
        )
        said = output.decode(errors="replace")
        if process.returncode:
            why = errors.decode(errors="replace").strip() or said.strip()
            why = " ".join(why.split())[:SHOWN_CHARACTERS]
            raise self._refused(
                _what(command),
                f"{Path(command[0]).name} {_what(command)} failed: {why}",
            )
        return said

    def _environment(self) -> Mapping[str, str]:
        # Nothing of ours: p4d reads P4… variables, and secrets are in the environment.
        return {"PATH": PATH, "LANG": "C.UTF-8", TAG: self.tag}

    def _refused(self, operation: str, sentence: str) -> Refused:
        return Refused(sentence, system="host", operation=operation)


def _followed(
    process: subprocess.Popen[bytes],
    command: Sequence[str],
    told: bytes,
    *,
    within_seconds: float,
) -> tuple[bytes, bytes]:
    """Wait for a command, as long as it may act; return what it printed.

    Raises: Busy (too slow), and whatever refuses leave. It is killed then.
    """
    ends = time.monotonic() + within_seconds
    try:
        while True:
            try:
                return process.communicate(told, timeout=ASKS_EVERY_SECONDS)
            except subprocess.TimeoutExpired as error:
                if time.monotonic() > ends:
                    raise Busy(
                        f"{Path(command[0]).name} has not ended after "
                        f"{within_seconds:.0f} s.",
                        system="host",
                        operation=_what(command),
                    ) from error
            require_leave()
    except BaseException:
        process.kill()
        process.communicate()
        raise


def _what(command: Sequence[str]) -> str:
    """Return what a command does: its last option."""
    options = [word for word in command[1:] if word.startswith("-")]
    return options[-1].partition("=")[0] if options else Path(command[0]).name


def is_port_free(address: str, port: int) -> bool:
    """Return whether a server could listen there now."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind((address, port))
    except OSError:
        return False
    return True
