"""A checkpoint of p4d with its archives, and the lab restored from it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.rcs_archives import archive

PROGRAM = [b"int main(void) { return 1; }\n", b"int main(void) { return 0; }\n"]
MAKEFILE = b"program: main.c\n\tcc -o program main.c\n"
TEXTS = [b"one\n", b"one\ntwo @ $Id$\n", b"three\n"]


BINARY = bytes(range(256))


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest().upper()


def rev(path: str, number: int, data: bytes, **given: Any) -> str:
    """Return a row of db.rev; a digest is stored in base64 since 2017.1."""
    digest = (
        base64.b64encode(hashlib.md5(data, usedforsecurity=False).digest())
        .decode()
        .rstrip("=")
    )
    action, change = given.get("action", 0), given.get("change", number)
    size = len(data)
    kind, lbr = given.get("type", 0), given.get("lbr", f"1.{number}")
    return (
        f"@pv@ 9 @db.rev@ @{path}@ {number} {kind} {action} {change} 1000 900"
        f" {digest} {size} 0 0 @{path}@ @{lbr}@ {kind} "
    )


def checkpoint() -> str:
    keyword = TEXTS[1].replace(b"$Id$", b"$Id: //depot/Src/main.c#2 $")
    rows = [
        "@nx@ 0 1499683054 @43@ 2 0 0 0 0 @/root@ @journal@ @@ @@ @@ ",
        "@pv@ 1 @db.counters@ @change@ @3@ ",
        f"@pv@ 7 @db.user@ @anna@ @anna@@x@ @@ 10 20 @Anna@ @{md5(b'apple')}@"
        " 1 @@ 0 0 0 0 0 0 ",
        "@pv@ 7 @db.domain@ @depot@ 100 @@ @@ @@ @@ @@ 10 10 0 @Depot@ @@ @@ 0 ",
        "@pv@ 7 @db.domain@ @old@ 99 @@ @/old@ @@ @@ @anna@ 10 10 0 @x@ @@ @@ 0 ",
        "@pv@ 7 @db.domain@ @then@ 108 @@@2@ @@ @@ @@ @anna@ 10 10 0 @x@ @@ @@ 0 ",
        "@pv@ 1 @db.depot@ @depot@ 0 @@ @depot/...@ ",
        "@pv@ 1 @db.view@ @old@ 0 0 @//old/...@ @//depot/Src/...@ ",
        "@pv@ 1 @db.view@ @old@ 1 1 @//old/no/...@ @//depot/Src/no/...@ ",
        "@pv@ 3 @db.have@ @//old/main.c@ @//depot/Src/main.c@ 2 0 500 ",
        "@pv@ 5 @db.protect@ 0 0 @*@ @*@ 31 0 @//...@ @@ 10 ",
        "@pv@ 5 @db.protect@ 1 0 @anna@ @*@ 255 0 @//...@ @@ 10 ",
        rev("//depot/Src/main.c", 1, TEXTS[0]),
        rev("//depot/Src/main.c", 2, keyword, action=1, type=0x10),
        rev("//depot/Src/main.c", 3, TEXTS[2], action=1, type=0x20000),
        rev("//depot/Src/full.bin", 1, BINARY, type=0x10001),
        rev("//depot/Src/packed.bin", 1, BINARY + b"2", type=0x10003),
        rev("//depot/Src/link", 1, b"main.c", type=0x40000),
        rev("//depot/Src/gone", 1, b"").replace(" 0 0 1 ", " 0 2 1 ", 1),
        *(
            f"@pv@ 4 @db.change@ {n} {n} @old@ @anna@ 1000 1 @short@ @//...@ @@ @@ 0 "
            for n in (1, 2, 3)
        ),
        *(f"@pv@ 0 @db.desc@ {n} @Change {n}\nin two lines@ " for n in (1, 2, 3)),
        "@pv@ 0 @db.revcx@ 1 @//depot/Src/main.c@ 1 0 ",
        "@pv@ 2 @db.mystery@ 1 ",
    ]
    return "\n".join([*rows, "@ex@ 15727 1499683054", ""])


def put(root: Path) -> None:
    """Write the archives as a server that folds case keeps them."""
    folder = root / "depot" / "src"
    for name in ("full.bin,d", "packed.bin,d"):
        (folder / name).mkdir(parents=True)
    (folder / "main.c,v").write_bytes(archive(TEXTS))
    (folder / "link,v").write_bytes(archive([b"main.c"]))
    (folder / "full.bin,d" / "1.1").write_bytes(BINARY)
    (folder / "packed.bin,d" / "1.1.gz").write_bytes(gzip.compress(BINARY + b"2"))


def users(*names: str) -> str:
    """Return the rows of users, in this order."""
    return "".join(
        f"@pv@ 7 @db.user@ @{name}@ @{name}@@x@ @@ 10 20 @x@ @@ 1 @@ 0 0 0 0 0 0 \n"
        for name in names
    )


def restore(root: Path, path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *(sys.executable, "-m", "provisioner.lab.perforce"),
            *("-r", str(root), "-jr", str(path), *options),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[2],
    )


@dataclass(frozen=True)
class Real:
    """A checkpoint, the depots that belong to it, what to map of it and to build."""

    checkpoint: Path
    depots: Path
    view: str
    build: str


def ours(folder: Path) -> Real:
    """Make a checkpoint of a C program, and its archives."""
    rows = [
        "@nx@ 0 1499683054 @43@ 2 0 0 0 0 @/root@ @journal@ @@ @@ @@ ",
        "@pv@ 1 @db.counters@ @change@ @2@ ",
        "@pv@ 7 @db.domain@ @depot@ 100 @@ @@ @@ @@ @@ 10 10 0 @Depot@ @@ @@ 0 ",
        "@pv@ 1 @db.depot@ @depot@ 0 @@ @depot/...@ ",
        "@pv@ 5 @db.protect@ 0 0 @*@ @*@ 63 0 @//...@ @@ 10 ",
        *(rev("//depot/src/main.c", n, PROGRAM[n - 1], action=n - 1) for n in (1, 2)),
        rev("//depot/src/Makefile", 1, MAKEFILE),
        *(
            f"@pv@ 4 @db.change@ {n} {n} @old@ @anna@ 1000 1 @short@ @//...@ @@ @@ 0 "
            for n in (1, 2)
        ),
        *(f"@pv@ 0 @db.desc@ {n} @Change {n}@ " for n in (1, 2)),
        "@ex@ 15727 1499683054",
    ]
    (folder / "checkpoint").write_text("\n".join([*rows, ""]))
    source = folder / "tree" / "depot" / "src"
    source.mkdir(parents=True)
    (source / "main.c,v").write_bytes(archive(PROGRAM))
    (source / "Makefile,v").write_bytes(archive([MAKEFILE]))
    with tarfile.open(folder / "depots.tar", "w") as tar:
        tar.add(folder / "tree" / "depot", arcname="depot")
    return Real(
        checkpoint=folder / "checkpoint",
        depots=folder / "depots.tar",
        view="//depot/src/...",
        build="make && ./program",
    )


def given(folder: Path) -> Real:
    """Return the checkpoint that the environment names."""
    return Real(
        checkpoint=Path(os.environ["LAB_CHECKPOINT"]),
        depots=Path(os.environ["LAB_CHECKPOINT_DEPOTS"]),
        view=os.environ["LAB_CHECKPOINT_VIEW"],
        build=os.environ["LAB_CHECKPOINT_BUILD"],
    )


CHECKPOINTS = [ours, *([given] if "LAB_CHECKPOINT" in os.environ else [])]
