"""Our chown beside `chown -R` and `find | xargs -P`, in one run.

Prints one JSON line per figure; `ratio` says how many times as fast as the best of the
others we are. Needs root, a C compiler, and mkfs.btrfs for the local cases. However it
ends, by SIGTERM or SIGINT too, it leaves no process, mount or file behind.

Each method gets an equal tree, which is a volume of its own as clones are: a fresh
snapshot of one btrfs subvolume ("cold"), the same after every entry was checked once
("warm"), or, with a millisecond added to each call, a tmpfs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from shared.endings import end_in_order

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from provisioner.gateways.hosts.ownership import change_ownership  # noqa: E402
from provisioner.gateways.hosts.trees import native  # noqa: E402
from provisioner.gateways.hosts.trees.run import Walker  # noqa: E402

MEMORY = Path("/dev/shm")  # noqa: S108 - so that no disk is measured
SHAPES = ("tree", "flat", "chain")
LOCAL_SHAPES = ("tree", "flat")
FILES_IN_A_DIRECTORY = 30
DIRECTORIES_IN_A_DIRECTORY = 30
FILES_IN_A_LINK = 199
"""So that the others can name the end of the chain: a path has at most 4,095 bytes."""

FAR_BEHIND = 4.0
"""Times as slow as the fastest in the first round: not measured again."""


Method = Callable[[Path, int], list[list[str]]]
"""The commands, joined by pipes, that give a tree to a uid; none for ours."""


def plant(root: Path, *, shape: str, entries: int) -> None:
    """Make a tree of so many entries, its root included."""
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    left = entries - 1
    if shape == "flat":
        _touch(here, left)
    elif shape == "tree":
        _plant_tree(here, left)
    else:
        here = _plant_chain(here, left)
    os.close(here)


def _touch(directory: int, files: int) -> None:
    for number in range(files):
        name = f"file_{number:06}.txt"
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=directory))


def _make_directory(parent: int, name: str) -> int:
    os.mkdir(name, dir_fd=parent)
    return os.open(name, os.O_RDONLY, dir_fd=parent)


def _plant_tree(root: int, left: int) -> None:
    outer = 0
    while left > 0:
        above = _make_directory(root, f"outer{outer}")
        left, outer = left - 1, outer + 1
        for inner in range(min(DIRECTORIES_IN_A_DIRECTORY, left)):
            if left <= 0:
                break
            below = _make_directory(above, f"inner{inner}")
            files = min(FILES_IN_A_DIRECTORY, left - 1)
            _touch(below, files)
            os.close(below)
            left -= 1 + files
        os.close(above)


def _plant_chain(here: int, left: int) -> int:
    while left > 0:
        files = min(FILES_IN_A_LINK, left)
        _touch(here, files)
        left -= files
        if left > 0:
            below = _make_directory(here, "n")
            os.close(here)
            here, left = below, left - 1
    return here


def ours(root: Path, uid: int) -> list[list[str]]:
    """Return no command: ours is called, as a worker does that runs already."""
    return []


def chown_r(root: Path, uid: int) -> list[list[str]]:
    """Return coreutils' own recursion."""
    return [["chown", "-hR", f"{uid}:{uid}", str(root)]]


def find_xargs(processes: int) -> Method:
    """Return find, into so many chown at a time."""
    return lambda root, uid: [
        ["find", str(root), "-print0"],
        ["xargs", "-0", "-P", str(processes), "chown", "-h", f"{uid}:{uid}"],
    ]


def list_xargs(names: Path, *, batch: int) -> Method:
    """Return the published practice: a list made before, through 140 chown."""
    options = ["-d", "\n", "-a", str(names), "-P", "140", "-n", str(batch)]
    return lambda root, uid: [["xargs", *options, "chown", "-h", f"{uid}:{uid}"]]


class Arena:
    """Runs methods, each for another uid, and checks what they did."""

    def __init__(self, walker: Walker) -> None:
        self._uid = 100_000
        self.walker = walker

    def seconds(
        self, method: Method, root: Path, *, environment: dict[str, str]
    ) -> float:
        """Return how long a method takes; fail where it left something."""
        self._uid += 1
        commands = method(root, self._uid)
        os.sync()
        os.environ |= environment
        began = time.perf_counter()
        if commands:
            run_pipe(commands)
        else:
            change_ownership(root, uid=self._uid, gid=self._uid, walker=self.walker)
        seconds = time.perf_counter() - began
        for name in environment:
            del os.environ[name]
        if output("find", str(root), "!", "-uid", str(self._uid)):
            raise SystemExit(f"{commands or 'ours'} left something behind")
        return seconds


def run_pipe(commands: list[list[str]]) -> None:
    """Run commands joined by pipes; fail if one fails, and leave none running."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for number, command in enumerate(commands):
            is_last = number == len(commands) - 1
            processes.append(
                subprocess.Popen(
                    command,
                    cwd=PROJECT,
                    stdin=processes[-1].stdout if processes else None,
                    stdout=None if is_last else subprocess.PIPE,
                    process_group=processes[0].pid if processes else 0,
                )
            )
        for command, process in zip(commands, processes, strict=True):
            if process.wait() != 0:
                raise SystemExit(f"failed: {command}")
    finally:
        if processes:
            # What xargs has started too, where we are leaving early.
            with suppress(ProcessLookupError):
                os.killpg(processes[0].pid, signal.SIGKILL)


@contextmanager
def mounted(directory: Path, *arguments: str) -> Iterator[Path]:
    """Mount something on a directory that is made for it and removed afterwards."""
    directory.mkdir()
    try:
        run("mount", *arguments, str(directory))
        yield directory
    finally:
        if directory.is_mount():
            # Lazily: what was killed a moment ago may still have a file open.
            run("umount", "-l", str(directory))
        directory.rmdir()


@contextmanager
def btrfs_image(directory: Path) -> Iterator[Path]:
    """Mount a btrfs filesystem in a file."""
    image = directory / "btrfs.img"
    with image.open("wb") as file:
        file.truncate(6 << 30)
    run("mkfs.btrfs", "-q", str(image))
    with mounted(directory / "btrfs", "-o", "loop,noatime", str(image)) as made:
        yield made


def run(*command: str) -> None:
    """Run a command that has to succeed, quietly."""
    output(*command)


def output(*command: str) -> bytes:
    """Return what a command prints that has to succeed."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def best_of(
    rounds: int, methods: dict[str, Method], timed: Callable[[Method], float]
) -> dict[str, float]:
    """Return the best time of each method; rounds are interleaved."""
    best = {name: timed(method) for name, method in methods.items()}
    for _ in range(rounds - 1):
        for name, method in methods.items():
            if name == "ours" or best[name] < FAR_BEHIND * min(best.values()):
                best[name] = min(best[name], timed(method))
    return {name: round(seconds, 3) for name, seconds in best.items()}


def say(
    arena: Arena, *, case: str, shape: str, entries: int, best: dict[str, float]
) -> None:
    """Print a figure: our time, the others', and how we compare with their best."""
    others = {name: seconds for name, seconds in best.items() if name != "ours"}
    winner = min(others, key=lambda name: others[name])
    figure = {
        "benchmark": "ownership",
        "walker": arena.walker,
        "case": case,
        "shape": shape,
        "entries": entries,
        "seconds": best,
        "best_other": winner,
        "ratio": round(others[winner] / best["ours"], 2),
        "entries_per_second": round(entries / best["ours"]),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(figure), flush=True)


def measure_local(arena: Arena, directory: Path, *, entries: int, rounds: int) -> None:
    """Measure on btrfs, where a call costs microseconds."""
    processors = os.cpu_count() or 1
    methods: dict[str, Method] = {"ours": ours, "chown -R": chown_r}
    for processes in (processors, 2 * processors):
        methods[f"find|xargs -P {processes}"] = find_xargs(processes)
    with btrfs_image(directory) as volumes:
        for shape in LOCAL_SHAPES:
            origin = volumes / shape
            run("btrfs", "subvolume", "create", str(origin))
            plant(origin / "files", shape=shape, entries=entries - 1)
            for is_warm in (False, True):
                timed = partial(on_a_clone, arena, origin, is_warm=is_warm)
                best = best_of(rounds, methods, timed)
                case = "btrfs warm" if is_warm else "btrfs cold"
                say(arena, case=case, shape=shape, entries=entries, best=best)


def on_a_clone(arena: Arena, origin: Path, method: Method, *, is_warm: bool) -> float:
    """Return how long a method takes on a snapshot of its own."""
    clone = origin.with_name("clone")
    run("btrfs", "subvolume", "snapshot", str(origin), str(clone))
    if is_warm:
        run("find", str(clone), "-newermt", "2100-01-01")
    seconds = arena.seconds(method, clone, environment={})
    run("btrfs", "subvolume", "delete", "-c", str(clone))
    # Else its removal would go on beside whoever comes next.
    run("btrfs", "subvolume", "sync", str(origin.parent))
    return seconds


def measure_slow(
    arena: Arena, directory: Path, *, entries: int, recursive_entries: int, rounds: int
) -> None:
    """Measure with a millisecond added to each call that changes an owner."""
    shim = directory / "slow_chown.so"
    source = str(PROJECT / "benchmarks/slow_chown.c")
    run("cc", "-O2", "-shared", "-fPIC", "-o", str(shim), source, "-ldl")
    environment = {"LD_PRELOAD": str(shim)}
    tmpfs = ("-t", "tmpfs", "-o", "nr_inodes=0", "slow")
    for shape in SHAPES:
        # The long paths of a chain take the list minutes: a third shows it as well.
        listed = entries // 3 if shape == "chain" else entries
        for count, against_recursion in ((recursive_entries, True), (listed, False)):
            with mounted(directory / "slow", *tmpfs) as root:
                plant(root / "files", shape=shape, entries=count - 1)
                methods: dict[str, Method] = {"ours": ours}
                if against_recursion:
                    methods["chown -R"] = chown_r
                else:
                    names = directory / "names"
                    names.write_bytes(output("find", str(root)))
                    methods |= lists(names, entries=count)
                timed = partial(arena.seconds, root=root, environment=environment)
                best = best_of(1 if against_recursion else rounds, methods, timed)
                say(arena, case="1 ms a call", shape=shape, entries=count, best=best)


def lists(names: Path, *, entries: int) -> dict[str, Method]:
    """Return the prebuilt list in batches of 1,000, and of one for each of the 140."""
    return {
        f"list|xargs -P 140 -n {batch}": list_xargs(names, batch=batch)
        for batch in sorted({1000, math.ceil(entries / 140)})
    }


def main() -> None:
    """Measure what this machine allows to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entries", type=int, default=300_000)
    parser.add_argument("--recursive-entries", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("local", "slow"))
    parser.add_argument("--directory", type=Path, default=MEMORY)
    parser.add_argument("--walker", choices=("compiled", "sequential"))
    options = parser.parse_args()
    if os.geteuid() != 0:
        print(json.dumps({"benchmark": "ownership", "skipped": "needs root"}))
        return
    end_in_order()
    if options.walker != "sequential":
        native.main(sys.stderr)
    built: Walker = "compiled" if native.find_program() else "sequential"
    arena = Arena(options.walker or built)
    with tempfile.TemporaryDirectory(dir=options.directory) as made:
        directory = Path(made)
        if options.only != "slow" and shutil.which("mkfs.btrfs"):
            measure_local(
                arena, directory, entries=options.entries, rounds=options.rounds
            )
        if options.only != "local" and shutil.which("cc"):
            measure_slow(
                arena,
                directory,
                entries=options.entries,
                recursive_entries=options.recursive_entries,
                rounds=options.rounds,
            )


if __name__ == "__main__":
    main()
