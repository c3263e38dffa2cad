"""Start the lab alone: `python manage.py lab [--root DIR] [--btrfs SIZE]`.

Prints one JSON line when both servers answer, then serves until SIGINT or SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from provisioner.demo.ports import free_port
from provisioner.demo.processes import Child, ProcessFailed

READY_WITHIN_SECONDS = 60.0
LOOK_EVERY_SECONDS = 0.5


class Command(BaseCommand):
    help = "Run the lab's ONTAP and Perforce servers until stopped."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--root", type=Path, default=settings.VAR_DIR / "lab")
        parser.add_argument("--ontap-port", type=int, default=8443)
        parser.add_argument("--perforce-port", type=int, default=1666)
        parser.add_argument(
            "--btrfs",
            metavar="SIZE",
            help="Keep volumes in a loop-mounted btrfs image of this size, such as 8G "
            "(as root, with btrfs-progs).",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        root: Path = options["root"].resolve()
        root.mkdir(parents=True, exist_ok=True)
        stopped = threading.Event()
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, lambda *_: stopped.set())
        children: list[Child] = []
        try:
            said = self._start(children, root=root, options=options)
            self.stdout.write(json.dumps(said))
            self.stdout.flush()
            while not stopped.wait(LOOK_EVERY_SECONDS):
                for child in children:
                    if not child.is_running:
                        raise CommandError(
                            f"{child.name} ended; see {child.log_path}:\n"
                            + child.last_lines()
                        )
        except ProcessFailed as error:
            raise CommandError(str(error)) from error
        finally:
            for child in reversed(children):
                child.stop()

    def _start(
        self, children: list[Child], *, root: Path, options: dict[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Start both servers side by side; return what they said when ready."""
        btrfs = ["--btrfs", options["btrfs"]] if options["btrfs"] else []
        commands = {
            "ontap": [
                *("--root", str(root / "ontap")),
                *("--port", str(self._port("ONTAP", options["ontap_port"]))),
                *btrfs,
            ],
            "perforce": [
                *("-r", str(root / "perforce")),
                "-p",
                f"127.0.0.1:{self._port('Perforce', options['perforce_port'])}",
            ],
        }
        for name, arguments in commands.items():
            children.append(
                Child(
                    f"lab-{name}",
                    [sys.executable, "-m", f"provisioner.lab.{name}", *arguments],
                    log_dir=root,
                    reads_output=True,
                )
            )
        ontap, perforce = (
            child.read_json_line(timeout_seconds=READY_WITHIN_SECONDS)
            for child in children
        )
        # P4PORT is what every Perforce program calls "port".
        perforce["port"] = f"{perforce.pop('host')}:{perforce['port']}"
        return {"ontap": ontap, "perforce": perforce}

    def _port(self, name: str, wanted: int) -> int:
        """Return the wanted port or the next free one; 0 lets the system choose."""
        if not wanted:
            return 0
        port = free_port(wanted)
        if port != wanted:
            self.stderr.write(
                f"{name}: port {wanted} is taken, using {port}.", style_func=str
            )
            self.stderr.flush()
        return port
