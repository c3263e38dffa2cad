from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from P4 import P4

from provisioner.gateways.perforce.paths import (
    client_path_to_local,
    escape_path,
    ignore_file_text,
    unescape_path,
)


@given(st.text("ab@#*%25340A/ é"))
def test_escaping_can_be_undone_and_leaves_nothing_special(name: str) -> None:
    escaped = escape_path(name)

    assert unescape_path(escaped) == name
    assert not set(escaped) & set("@#*")


def test_client_syntax_becomes_local() -> None:
    path = client_path_to_local("//ws/src/a%40b%25.c", client="ws", root="/mnt/w s/")

    assert path == "/mnt/w s/src/a@b%.c"


def test_local_syntax_stays() -> None:
    path = client_path_to_local("/mnt/ws/a%40b", client="ws", root="/mnt/ws")

    assert path == "/mnt/ws/a%40b"


@pytest.mark.parametrize(
    ("patterns", "ignored", "kept"),
    [
        (("*.o",), ["a.o", "src/a.o"], ["a.c"]),
        (("build/",), ["build/x", "src/build/x"], ["builder"]),
        (("/build",), ["build/x"], ["src/build/x"]),
        (("/out/*.log",), ["out/a.log"], ["src/out/a.log", "out/a.c"]),
        (("*.o", "!/keep.o"), ["a.o", "src/keep.o"], ["keep.o"]),
        (("# a comment", "", "*.tmp"), ["x.tmp"], ["# a comment"]),
        ((), [], ["a.o"]),
    ],
)
def test_perforce_reads_our_ignore_file_as_one_in_the_root(
    patterns: tuple[str, ...], ignored: list[str], kept: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as root:
        path = Path(place, "ignore")
        path.write_text(ignore_file_text(patterns, root=root))
        library = P4()
        library.cwd = "/"
        library.ignore_file = str(path)

        for name in ignored:
            assert library.is_ignored(f"{root}/{name}"), name
        for name in kept:
            assert not library.is_ignored(f"{root}/{name}"), name
