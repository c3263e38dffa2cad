"""Blocks of a page of the documentation, and a shell that runs them as a reader does.

All blocks of one run are one script in the order of the page: what one exports, the
next one has. Each command is at the line that it has in the page, so that a failure
names the page and the line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from markdown_it import MarkdownIt

from tests.support.processes import is_any_left

ENDS_WITHIN_SECONDS = 60
# Sections whose commands take an empty host: tests/shipping/test_installation.py runs
# them, and nothing else of these pages.
ON_A_HOST_OF_ITS_OWN = {
    "docs/install.md": (
        "The program",
        "Without install.sh",
        "Database and settings",
        "Start",
        "The first workspace",
        "Upgrades",
    ),
    "docs/backup.md": ("What to back up, and how often", "Prove it"),
    "docs/monitoring.md": ("One id in all logs",),
}
# Sections whose commands other tests run: each reads them from the page.
BY_TESTS_OF_THEIR_OWN = {
    "docs/client.md": ("Client library",),
    "docs/flex.md": ("Using it",),
    "docs/high-availability.md": ("Who promotes",),
    "docs/install.md": ("Containers",),
}
_MARK = "\036"
# Errors name the page's line, since the script's lines are the page's.
_SAY_WHERE = "trap 'echo \"$PAGE:$LINENO: $BASH_COMMAND\" >&2' ERR"


@dataclass(frozen=True)
class Block:
    """A fenced block: ```sh is the language sh; what follows it are its words."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int  # of the fence above it, counted from 1
    section: str  # the nearest heading above it


def blocks_of(page: Path, language: str = "", *, section: str = "") -> list[Block]:
    """Return a page's fenced blocks; only those of a language or a section if given."""
    found, heading = [], ""
    tokens = MarkdownIt("commonmark").parse(page.read_text())
    for token, before in zip(tokens, [None, *tokens], strict=False):
        if before is not None and before.type == "heading_open":
            heading = token.content
        if token.type == "fence" and token.map is not None:
            kind, *words = token.info.split() or [""]
            found.append(
                Block(kind, tuple(words), token.content, token.map[0] + 1, heading)
            )
    return [
        block
        for block in found
        if language in ("", block.language) and section in ("", block.section)
    ]


@dataclass
class Reader:
    """Somebody at a shell who pastes the blocks of a page."""

    home: Path  # where they are, and where the shell's output goes
    environment: Mapping[str, str]
    # A program that runs the shell, such as ("unshare", "--mount").
    within: Sequence[str] = ()
    ran: set[tuple[str, int]] = field(default_factory=set)  # pages, and lines of blocks
    _shells: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def run(
        self,
        page: Path,
        blocks: Sequence[Block],
        *,
        instead: Mapping[str, str] | None = None,
        seconds: float = ENDS_WITHIN_SECONDS,
    ) -> list[str]:
        """Run blocks of a page in one shell; return what each of them printed.

        instead: what is typed for a text of the page, such as a host that is not here;
        each has to be in a block. What a block starts with `&` runs until the end of
        `reading`. A command that fails fails the test, with its line in the page.
        """
        script = _script_of(page, blocks, instead or {})
        output = self.home / f"{page.stem}.{len(self._shells)}.output"
        with output.open("wb") as printed:
            shell = subprocess.Popen(
                [*self.within, "bash", "-eu", "-o", "pipefail", "-c", script],
                cwd=self.home,
                env={**self.environment, "PAGE": str(page)},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                start_new_session=True,
            )
        self._shells.append(shell)
        self.ran |= {(page.name, block.line) for block in blocks}
        try:
            code: int | str = shell.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            code = f"none within {seconds} s"
        said = output.read_text(errors="replace")
        assert code == 0, f"{page.name} ended with {code}:\n{said[-8000:]}"
        return [part.partition("\n")[2] for part in said.split(_MARK)[1:]]

    def leave(self) -> None:
        """End all that the blocks left running."""
        for shell in self._shells:
            _end_group(shell)
        self._shells.clear()


@contextmanager
def reading(
    home: Path, environment: Mapping[str, str], *, within: Sequence[str] = ()
) -> Iterator[Reader]:
    """Give a reader, and end all that they started at the end."""
    reader = Reader(home, environment, within)
    try:
        yield reader
    finally:
        reader.leave()


def _script_of(page: Path, blocks: Sequence[Block], instead: Mapping[str, str]) -> str:
    assert blocks, f"{page.name} has no such block"
    lines = [""] * (len(page.read_text().splitlines()) + 1)
    lines[0] = _SAY_WHERE
    unused = set(instead)
    for block in blocks:
        text = block.text
        for old, new in instead.items():
            if old in text:
                unused.discard(old)
            text = text.replace(old, new)
        typed = text.splitlines()
        assert len(typed) == len(block.text.splitlines()), "a line has to stay one"
        mark = f"printf '{_MARK}%s\\n' {block.line}"
        begin = block.line - 1
        # A page that begins with a block has no line above it.
        lines[begin] = f"{lines[begin]}; {mark}".removeprefix("; ")
        lines[begin + 1 : begin + 1 + len(typed)] = typed
    assert not unused, f"{page.name} does not say {sorted(unused)}"
    return "\n".join(lines) + "\n"


def _end_group(shell: subprocess.Popen[bytes]) -> None:
    """End a shell and what it started: politely, and after a while for certain."""
    ends = time.monotonic() + ENDS_WITHIN_SECONDS
    number = signal.SIGTERM
    while is_any_left(shell.pid):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, number)
        time.sleep(0.1)
        if time.monotonic() > ends:
            number = signal.SIGKILL
    shell.wait()
