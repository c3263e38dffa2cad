"""The command line as people have it: fetched from the server, run as a program."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import subprocess
import sys
import termios
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pytest_django.live_server_helper import LiveServer

from provisioner.accounts.models import User
from provisioner.accounts.tokens import token_create
from provisioner.cli import cloneyard

ENDS_WITHIN_SECONDS = 60
# A terminal belongs to who asks for it, which a child has to do itself.
OWN_THE_TERMINAL = (
    f"import fcntl, os, sys; fcntl.ioctl(0, {termios.TIOCSCTTY}, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)

Ran = subprocess.CompletedProcess[str]


@dataclass
class Terminal:
    """What a person sees, and types into."""

    process: subprocess.Popen[bytes]
    end: int
    seen: str = ""

    def read_until(self, text: str) -> None:
        while text not in self.seen:
            assert self._read(), f"{text!r} is not in {self.seen!r}"

    def type(self, line: str, *, key: str = "\n") -> None:
        os.write(self.end, f"{line}{key}".encode())

    def finish(self) -> int:
        while self._read():
            pass
        os.close(self.end)
        return self.process.wait(timeout=ENDS_WITHIN_SECONDS)

    def _read(self) -> bool:
        try:
            read = os.read(self.end, 4096)
        except OSError:  # Linux says so when the other end is closed
            return False
        self.seen += read.decode(errors="replace")
        return bool(read)


@dataclass
class CommandLine:
    """`cloneyard` in a home of its own, without anything else of ours."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return self.home / "bin" / "cloneyard"

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-I", str(self.path), *words]

    def run(self, *words: str, said: str = "", **environment: str) -> Ran:
        """Run it to its end; `said` is on its standard input."""
        return subprocess.run(
            self.command(*words),
            input=said,
            capture_output=True,
            text=True,
            env={**self.environment, **environment},
            timeout=ENDS_WITHIN_SECONDS,
        )

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a command that may call it."""
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )

    def run_program(self, *command: str) -> Ran:
        """Run a program that may call it, such as a shell, to its end."""
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=self.environment,
            timeout=ENDS_WITHIN_SECONDS,
        )

    def on_a_terminal(self, *words: str) -> Terminal:
        """Start it where a person sits."""
        return self.program_on_a_terminal(*self.command(*words))

    def program_on_a_terminal(self, *command: str) -> Terminal:
        """Start a program that may call it, by its path, where a person sits."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, b"\x18\0\xc8\0\0\0\0\0")  # 24 x 200
        process = subprocess.Popen(
            [sys.executable, "-c", OWN_THE_TERMINAL, *command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**self.environment, "TERM": "xterm"},
            start_new_session=True,
        )
        os.close(theirs)
        return Terminal(process, ours)

    def forget_token(self) -> None:
        del self.environment["CLONEYARD_TOKEN"]


@pytest.fixture
def command_line(live_server: LiveServer, tmp_path: Path, alice: User) -> CommandLine:
    """The program that the server serves, with a token of alice's."""
    it = CommandLine(tmp_path)
    it.path.parent.mkdir()
    url = f"{live_server.url}/cli"
    with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310 - our own
        it.path.write_bytes(answer.read())
    it.path.chmod(0o755)
    _, secret = token_create(by=alice)
    it.environment = {
        "HOME": str(tmp_path),
        "PATH": f"{it.path.parent}:{Path(sys.executable).parent}:/usr/bin:/bin",
        "LANG": "C",
        "CLONEYARD_TOKEN": secret,
    }
    return it


def printed(ran: Ran, *, code: int = cloneyard.DONE) -> Any:
    """Return the JSON that a run printed."""
    assert ran.returncode == code, ran.stderr
    return json.loads(ran.stdout)


def ended_with(ran: Ran, code: int, *, saying: str) -> None:
    assert (ran.returncode, ran.stdout) == (code, ""), ran
    assert saying in ran.stderr
    assert "Traceback" not in ran.stderr
