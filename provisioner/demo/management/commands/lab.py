"""Start only the lab: `python manage.py lab [--root DIR] [--btrfs SIZE]`.

Prints one JSON line when both servers answer, then serves until SIGINT or SIGTERM.
`--more-svm NAME` adds an SVM ("more_svms" of "ontap" in that line), `--peer` a second
cluster to mirror to ("peer", which has what "ontap" has), `--edge SERVERID` an edge
server ("edge", which has what "perforce" has). `--restore CHECKPOINT --depots ARCHIVE`
makes the Perforce server that of a checkpoint and its depot files.

`--connect` enters the lab as the site `demo` of this installation, with a small
template: a trial without an array. Its passwords are then ONTAP_PASSWORD and P4PASSWD,
which the web server and workers know, too. `--host NAME` is for containers, which reach
the lab by that name.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from provisioner.demo.connecting import connect, wait_for_administrator
from provisioner.demo.processes import Child, ProcessFailed
from provisioner.lib.refusals import ActionRefused

READY_WITHIN_SECONDS = 60.0
POLL_EVERY_SECONDS = 0.5


class Command(BaseCommand):
    help = "Run the lab's ONTAP and Perforce servers until stopped."
    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--root", type=Path, default=settings.VAR_DIR / "lab")
        parser.add_argument(
            "--connect", action="store_true", help="Make it the site demo, for a trial."
        )
        parser.add_argument("--host", default="127.0.0.1", help="Where it listens.")
        parser.add_argument("--ontap-port", type=int, default=8443)
        parser.add_argument("--perforce-port", type=int, default=1666)
        parser.add_argument(
            "--btrfs",
            metavar="SIZE",
            help="Keep volumes in a loop-mounted btrfs image of this size, such as 8G "
            "(as root, with btrfs-progs).",
        )

        parser.add_argument(
            "--ignore-case",
            action="store_true",
            help="Have Perforce take names that differ in case for one; for good.",
        )
        parser.add_argument(
            "--unicode",
            action="store_true",
            help="Have Perforce in Unicode mode: clients set P4CHARSET.",
        )
        parser.add_argument(
            "--more-svm",
            action="append",
            default=[],
            metavar="NAME",
            help="Have a further SVM on the cluster; may be given again.",
        )
        parser.add_argument(
            "--peer",
            action="store_true",
            help="Have a second ONTAP cluster, peered with the first one.",
        )
        parser.add_argument(
            "--volumes",
            type=Path,
            metavar="FILE",
            help="Have the volumes of this file, whose contents are only said.",
        )
        parser.add_argument("--peer-svm", default="svm_dr", metavar="NAME")
        parser.add_argument("--peer-port", type=int, default=8444)
        parser.add_argument(
            "--edge", metavar="SERVERID", help="Have an edge server of Perforce, too."
        )
        parser.add_argument("--edge-port", type=int, default=1667)
        parser.add_argument(
            "--restore",
            type=Path,
            metavar="CHECKPOINT",
            help="Restore this checkpoint, plain or compressed, on a new root.",
        )
        parser.add_argument(
            "--depots",
            type=Path,
            metavar="ARCHIVE",
            help="The depot directories of the checkpoint: a tar file or a directory.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        root: Path = options["root"].resolve()
        root.mkdir(parents=True, exist_ok=True)
        stopped = threading.Event()
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, lambda *_: stopped.set())
        children: list[Child] = []
        if options["connect"] and not (settings.ONTAP_PASSWORD and settings.P4PASSWD):
            raise CommandError(
                "Set ONTAP_PASSWORD and P4PASSWD first, for web server and workers as "
                "well: the lab takes them for its own."
            )
        try:
            said = self.start(children, root=root, options=options)
            if options["connect"]:
                self._connect(said, root=root, is_stopped=stopped.is_set)
            else:
                self.stdout.write(json.dumps(said))
            self.stdout.flush()
            while not stopped.wait(POLL_EVERY_SECONDS):
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

    def _connect(
        self,
        said: dict[str, dict[str, Any]],
        *,
        root: Path,
        is_stopped: Callable[[], bool],
    ) -> None:
        """Enter the lab as a site. It has passwords, so its lines are not printed."""

        def say(sentence: str) -> None:
            self.stdout.write(sentence)
            self.stdout.flush()

        by = wait_for_administrator(is_stopped=is_stopped, say=say)
        if by is not None:
            try:
                connect(said, by=by, root=root, say=say)
            except ActionRefused as refusal:
                raise CommandError(str(refusal)) from refusal

    def start(
        self, children: list[Child], *, root: Path, options: dict[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Start both servers, restored where asked for; return their ready lines.

        They are added to `children`, also where one of them does not start.

        Raises: CommandError, ProcessFailed.
        """
        restored = self._restore(root / "perforce", options)
        said = self._start(children, root=root, options=options)
        said["perforce"] |= restored
        return said

    def _restore(self, root: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Restore the given checkpoint; return the lab's report.

        Raises: CommandError.
        """
        checkpoint, depots = options["restore"], options["depots"]
        if checkpoint is None:
            if depots is not None:
                raise CommandError("--depots belongs to --restore CHECKPOINT.")
            return {}
        if root.joinpath("db.sqlite3").exists():
            raise CommandError(
                f"{root} has a Perforce server already. Start it without --restore, "
                "or name another --root."
            )
        command = [sys.executable, "-m", "provisioner.lab.perforce", "-r", str(root)]
        command += [*_kind(options), "-jr", str(checkpoint.resolve())]
        if depots is not None:
            command += ["--depots", str(depots.resolve())]
        done = subprocess.run(
            command, cwd=settings.BASE_DIR, capture_output=True, text=True, check=False
        )
        if done.returncode:
            # It can be tried again: what is left is no server that anybody asked for.
            for path in root.glob("db.sqlite3*"):
                path.unlink()
            raise CommandError(f"The restore failed: {done.stderr.strip()}")
        said = json.loads(done.stdout)
        for warning in said["warnings"]:
            self.stderr.write(f"Warning: {warning}")
        self.stderr.flush()
        return {"restore": said}

    def _start(
        self, children: list[Child], *, root: Path, options: dict[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Start both servers side by side; return their ready lines."""
        commands = {
            "ontap": self._ontap(root / "ontap", options),
            "perforce": [
                *("-r", str(root / "perforce")),
                *("-p", f"{options['host']}:{options['perforce_port']}", "--or-above"),
                *_kind(options),
            ],
        }
        # Without passwords for all, as in the demo, it makes its own.
        passwords = {
            "LAB_ONTAP_PASSWORD": settings.ONTAP_PASSWORD,
            "LAB_P4PASSWD": settings.P4PASSWD,
        }
        for name, arguments in commands.items():
            children.append(
                Child(
                    f"lab-{name}",
                    [sys.executable, "-m", f"provisioner.lab.{name}", *arguments],
                    log_dir=root,
                    environment=passwords if options["connect"] else None,
                    reads_output=True,
                )
            )
        ontap, perforce = (
            child.read_json_line(timeout_seconds=READY_WITHIN_SECONDS)
            for child in children
        )
        said = {"ontap": ontap, "perforce": perforce}
        if "peer" in ontap:
            said["peer"] = ontap.pop("peer")
            self._say("The second ONTAP", options["peer_port"], got=said["peer"])
        self._say("ONTAP", options["ontap_port"], got=ontap)
        self._say("Perforce", options["perforce_port"], got=perforce)
        # P4PORT is what every Perforce program calls "port".
        perforce["port"] = f"{perforce.pop('host')}:{perforce['port']}"
        if options["edge"]:
            said["edge"] = self._start_edge(
                children, root=root, options=options, commit=perforce["port"]
            )
        return said

    def _start_edge(
        self,
        children: list[Child],
        *,
        root: Path,
        options: dict[str, Any],
        commit: str,
    ) -> dict[str, Any]:
        """Start an edge server that follows the Perforce server; return its line."""
        arguments = [
            *("-r", str(root / "perforce-edge")),
            *("-p", f"127.0.0.1:{options['edge_port']}", "--or-above"),
            *("--services", "edge-server", "--server-id", options["edge"]),
            *("--replicates", str(root / "perforce"), "--target", commit),
            *_kind(options),
        ]
        edge = Child(
            "lab-edge",
            [sys.executable, "-m", "provisioner.lab.perforce", *arguments],
            log_dir=root,
            reads_output=True,
        )
        children.append(edge)
        said = edge.read_json_line(timeout_seconds=READY_WITHIN_SECONDS)
        self._say("The edge server", options["edge_port"], got=said)
        return {**said, "port": f"{said.pop('host')}:{said['port']}"}

    def _ontap(self, root: Path, options: dict[str, Any]) -> list[str]:
        """Return the arguments of the lab's ONTAP: one cluster, or two."""
        arguments = ["--root", str(root), "--or-above", "--host", options["host"]]
        arguments += ["--port", str(options["ontap_port"])]
        if options["btrfs"]:
            arguments += ["--btrfs", options["btrfs"]]
        for svm in options["more_svm"]:
            arguments += ["--more-svm", svm]
        if options["volumes"]:
            arguments += ["--volumes", str(options["volumes"].resolve())]
        if options["peer"]:
            arguments += [
                *("--peer-root", str(root / "peer")),
                *("--peer-port", str(options["peer_port"])),
                *("--peer-svm", options["peer_svm"]),
            ]
        return arguments

    def _say(self, name: str, wanted: int, *, got: dict[str, Any]) -> None:
        """Report a server's port if it is not the wanted one."""
        if wanted and got["port"] != wanted:
            self.stderr.write(
                f"{name}: port {wanted} is taken, using {got['port']}.", style_func=str
            )
            self.stderr.flush()


def _kind(options: dict[str, Any]) -> list[str]:
    """Return the arguments for the kind of Perforce server."""
    given = {"-C1": options["ignore_case"], "--unicode": options["unicode"]}
    return [argument for argument, is_given in given.items() if is_given]
