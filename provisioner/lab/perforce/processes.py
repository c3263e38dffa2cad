"""The running commands, as `p4 monitor` shows, pauses and ends them.

Each is a file below `<root>/monitor`, so that every process that serves the root sees
all of them. Files of a killed process are ignored.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Running:
    """One command, or the wait for a connection's next one.

    `number` is its thread's, `started` seconds since the epoch.
    """

    number: int
    process: int
    user: str
    client: str
    address: str
    program: str
    command: str
    arguments: str
    started: float
    is_idle: bool = False


class ProcessTable:
    """The running commands of one root."""

    def __init__(self, root: Path) -> None:
        self._directory = root / "monitor"

    @contextlib.contextmanager
    def listing(self, command: Running) -> Iterator[None]:
        """Show a command while it runs."""
        self._directory.mkdir(exist_ok=True)
        path = self._path(command.number)
        path.write_text(json.dumps(asdict(command)))
        try:
            yield
        finally:
            self.clear(command.number)

    def all(self) -> list[Running]:
        """Return the running commands by number."""
        found = []
        for path in self._directory.glob("*.json"):
            # It may end, or not be written whole yet, as we look.
            with contextlib.suppress(FileNotFoundError, ValueError):
                command = Running(**json.loads(path.read_text()))
                if Path(f"/proc/{command.process}").exists():
                    found.append(command)
        return sorted(found, key=lambda command: command.number)

    def find(self, number: int) -> Running | None:
        return next((c for c in self.all() if c.number == number), None)

    def terminate(self, number: int) -> None:
        """Ask a command to end. Safe to repeat."""
        self._mark(number).touch()

    def is_terminated(self, number: int) -> bool:
        return self._mark(number).exists()

    def pause(self, number: int) -> None:
        """Ask a command to pause. Safe to repeat."""
        self._mark(number, "pause").touch()

    def resume(self, number: int) -> None:
        """Let a command continue. Safe to repeat."""
        self._mark(number, "pause").unlink(missing_ok=True)

    def is_paused(self, number: int) -> bool:
        return self._mark(number, "pause").exists()

    def clear(self, number: int) -> None:
        """Remove a command from the table; it continues. Safe to repeat."""
        for path in (
            self._path(number),
            self._mark(number),
            self._mark(number, "pause"),
        ):
            path.unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._directory / f"{number}.json"

    def _mark(self, number: int, kind: str = "end") -> Path:
        return self._directory / f"{number}.{kind}"
