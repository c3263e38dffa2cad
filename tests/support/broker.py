"""`p4 flex` as a broker runs it: a program that is told who asks, and answers once."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from provisioner.demo import depot
from tests.support.lab import Lab

SCRIPT: Path = settings.BASE_DIR / "docker" / "p4flex.py"
ONE_ANSWER = re.compile(r'action: (RESPOND|REJECT)\nmessage: "([^"\\]*)"\n')
ENDS_WITHIN_SECONDS = 60
IMPATIENT = "\nANSWER_WITHIN_SECONDS = 1.7\n"


def said_by_broker(user: str, *args: str, client_ip: str = "127.0.0.1") -> bytes:
    """Return what release 2020.2 writes for `p4 -u USER flex ARGS`."""
    fields = {
        "brokerListenPort": "1998",
        "brokerTargetPort": "localhost:1999",
        "command": "flex",
        "clientProg": "p4",
        "clientVersion": "2020.2/LINUX26X86_64/2057778",
        "clientProtocol": "89",
        "apiProtocol": "99999",
        "workspace": "laptop: hers",
        "user": user,
        "clientIp": client_ip,
        "clientHost": "laptop",
        "cwd": "/home/alice/a: b",
        "clientPort": "1998",
        "argCount": str(len(args)),
        **{f"Arg{number}": arg for number, arg in enumerate(args)},
    }
    lines = (f"{name}: {value}\n" for name, value in fields.items())
    return "".join(lines).encode("utf-8", "surrogateescape")


def ticket_of(lab: Lab, user: str, *, ended: bool = False) -> str:
    """Return a ticket as the user gets it at a shell."""
    return ticket_at(lab.perforce["port"], user, password="lab-password", ended=ended)


def ticket_at(port: str, user: str, *, password: str, ended: bool = False) -> str:
    """Return a ticket of any server, as the user gets it at a shell."""
    account = depot.DepotAccount(port=port, user=user, password=password)
    with tempfile.TemporaryDirectory() as scratch:
        p4 = depot.connect(account, client="", scratch=Path(scratch))
        try:
            p4.run_login("-a", "-p", password=password)
            ticket = str(p4.password)
            if ended:
                p4.run_logout("-a")
            return ticket
        finally:
            p4.disconnect()


@dataclass(frozen=True)
class Told:
    """The one answer of a run."""

    action: str
    message: str
    complaints: str


@dataclass(frozen=True)
class Broker:
    """The script and its configuration, in one directory."""

    directory: Path

    def set_up(self, *, is_patient: bool = True, **config: str) -> None:
        """Lay it there. A patient one waits for slow machines, as no broker would."""
        self.directory.mkdir(exist_ok=True)
        source = SCRIPT.read_text()
        assert IMPATIENT in source
        patience = IMPATIENT.replace("1.7", str(ENDS_WITHIN_SECONDS / 2))
        source = source.replace(IMPATIENT, patience) if is_patient else source
        (self.directory / SCRIPT.name).write_text(source)
        lines = [f"{name}={value}\n" for name, value in config.items()]
        (self.directory / "p4flex.conf").write_text("# ours\n" + "".join(lines))

    def run(self, user: str, *args: str) -> Told:
        return self.run_with(said_by_broker(user, *args))

    def run_with(self, said: bytes) -> Told:
        """Run the script as a broker does, without anything of the environment."""
        ran = subprocess.run(
            [sys.executable, "-I", str(self.directory / SCRIPT.name)],
            input=said,
            capture_output=True,
            env={},
            timeout=ENDS_WITHIN_SECONDS,
        )
        assert ran.returncode == 0, ran.stderr.decode()
        answered = ONE_ANSWER.fullmatch(ran.stdout.decode())
        assert answered, ran.stdout
        return Told(answered[1], answered[2], ran.stderr.decode())
