"""The parts of the command line that ask nobody."""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import shlex
import stat
import subprocess
import sys
import time
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provisioner.cli import cloneyard

# What a path or a client may hold: anything but NUL.
anything = st.text(st.characters(exclude_characters="\0", codec="utf-8"), min_size=1)


def workspace(**fields: Any) -> dict[str, Any]:
    usual = {"state": "ready", "name": "w", "client": "c", "p4port": "p:1"}
    return {**usual, "path": "/mnt/w", **fields}


# --- what a shell evaluates


@settings(max_examples=30)
@given(client=anything, p4port=anything, path=anything)
def test_a_shell_reads_back_what_was_meant(client: str, p4port: str, path: str) -> None:
    lines = cloneyard.shell_lines(workspace(client=client, p4port=p4port, path=path))

    lexer = shlex.shlex(lines, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, ""
    assert list(lexer) == [
        *("export", f"P4CLIENT={client}", ";", "export", f"P4PORT={p4port}", ";"),
        *("cd", path),
    ]


@settings(max_examples=10)
@given(client=anything, path=anything)
def test_a_real_shell_runs_nothing_of_it(client: str, path: str) -> None:
    lines = cloneyard.shell_lines(workspace(client=client, path="/" + path))
    told = 'cd() { printf "%s\\0" "$1"; }; eval "$1"; printf "%s\\0" "$P4CLIENT"'

    ran = subprocess.run(["sh", "-c", told, "sh", lines], capture_output=True)

    assert ran.stdout == f"/{path}\0{client}\0".encode()
    assert ran.stderr == b""


def test_without_a_client_the_one_from_before_does_not_count() -> None:
    lines = cloneyard.shell_lines(workspace(client="", p4port=""))
    assert lines == "unset P4CLIENT; cd /mnt/w"


def test_nothing_is_evaluated_for_what_is_not_ready() -> None:
    with pytest.raises(cloneyard.Stop, match="w is trashed") as stopped:
        cloneyard.shell_lines(workspace(state="trashed"))
    assert stopped.value.exit_code == cloneyard.REFUSED


# --- spans of time


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("8h", 28_800),
        ("90min", 5_400),
        ("90m", 5_400),
        ("1d12h", 129_600),
        ("1d 12h", 129_600),
        (" 45 s ", 45),
        ("0s", 0),
    ],
)
def test_spans_are_numbers_with_units(text: str, seconds: int) -> None:
    assert cloneyard.span(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "8", "h", "8 hours", "-8h", "8h!", "x8h", "1.5h", "8hh", "٨h"]
)
def test_anything_else_is_no_span(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 8h, 90min or 1d12h"):
        cloneyard.span(text)


@settings(max_examples=50)
@given(st.text())
def test_a_span_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(argparse.ArgumentTypeError):
        assert cloneyard.span(text) >= 0


def test_retry_after_is_seconds_or_a_date() -> None:
    soon = cloneyard.seconds_to_wait(formatdate(time.time() + 30, usegmt=True))

    assert soon is not None
    assert 0 < soon <= 30
    assert cloneyard.seconds_to_wait("7") == 7
    assert cloneyard.seconds_to_wait("Fri, 31 Dec 1999 23:59:59 GMT") == 0
    assert cloneyard.seconds_to_wait("soon") is None
    assert cloneyard.seconds_to_wait(None) is None


# --- addresses, and what is kept for them


@pytest.mark.parametrize(
    ("given_", "normal"),
    [
        ("https://Cloneyard.Example.com/", "https://cloneyard.example.com"),
        ("https://h:8443/yard/", "https://h:8443/yard"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
        ("http://localhost", "http://localhost"),
    ],
)
def test_an_address_has_one_form(given_: str, normal: str) -> None:
    assert cloneyard.normal_address(given_) == normal


@pytest.mark.parametrize(
    "address",
    [
        "cloneyard.example.com",
        "ftp://h",
        "https://",
        "https://alice:secret@h",
        "https://h:port",
        "http://h",
        "http://127.evil.example",
    ],
)
def test_what_is_no_address_or_not_safe_is_refused(address: str) -> None:
    with pytest.raises(cloneyard.Stop) as stopped:
        cloneyard.normal_address(address)
    assert stopped.value.exit_code == cloneyard.USAGE


def test_a_login_is_kept_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("CLONEYARD_TOKEN", raising=False)
    old = os.umask(0)
    try:
        for token in ("first", "second"):
            path = cloneyard.keep_login("https://h", token=token, user="alice")
    finally:
        os.umask(old)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == [path.name]
    assert cloneyard.token_for("https://h") == "second"
    assert cloneyard.chosen_address(None) == "https://h"


@pytest.mark.parametrize(
    ("mode", "content", "why"),
    [(0o644, "{}", "Others may read"), (0o600, "{", "sign in again")],
)
def test_a_login_that_is_open_or_damaged_is_not_used(
    mode: int, content: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("CLONEYARD_TOKEN", raising=False)
    path = cloneyard.keep_login("https://h", token="t", user="alice")
    path.write_text(content)
    path.chmod(mode)

    with pytest.raises(cloneyard.Stop, match=why) as stopped:
        cloneyard.token_for("https://h")
    assert stopped.value.exit_code == cloneyard.NOT_SIGNED_IN


# --- mistakes, which no server is asked about


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "usage: cloneyard"),
        ("new", "usage: cloneyard new"),
        ("extend hers 8", "write 8h, 90min or 1d12h"),
        ("retire hers --rescue --discard", "not allowed with"),
        ("show hers --js", "unrecognized arguments: --js"),
        ("list --server here", "https://HOST"),
        ("list --server http://h", "has to be reached by https"),
        ("list", "Which server?"),
        ("list --server https://h --ca-file /dev/null", "has no certificates"),
        ("login --server https://h --user alice", "cloneyard login --token"),
        ("login --server https://h --token", "That is not an API token."),
    ],
)
def test_a_mistake_is_explained_in_a_sentence(
    words: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("CLONEYARD_TOKEN", "two words" if "--token" in words else "t")
    monkeypatch.setattr("sys.stdin", io.StringIO("a password\n"))

    assert cloneyard.main(words.split()) == cloneyard.USAGE
    told = capsys.readouterr()
    assert (told.out, sentence in told.err) == ("", True), told.err


def test_with_json_a_mistake_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert cloneyard.main(["show", "w", "--export", "--json"]) == cloneyard.USAGE
    assert json.loads(capsys.readouterr().out)["code"] == "usage"


# --- the rest


def test_names_do_nothing_to_a_terminal() -> None:
    assert cloneyard.plain("a\x1b[2J\rb\u202ec “ü”") == "a?[2J?b?c “ü”"


def test_tables_and_json_do_nothing_to_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Titles, labels and names of files are others'."""
    title = "a\x1b[2J\x9b2J\u202eb “ü” 🐑"

    cloneyard.print_table([["TITLE"], [title]])
    cloneyard.print_json({"title": title})

    table, _, said = capsys.readouterr().out.partition("{")
    assert table == "TITLE\na?[2J?2J?b “ü” 🐑\n"
    assert json.loads("{" + said) == {"title": title}
    assert all(c.isprintable() or c == "\n" for c in said)
    assert "“ü” 🐑" in said


def test_findings_are_listed_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    cloneyard.print_findings(
        {
            "opened": [{"depot_file": "//depot/a", "action": "edit"}],
            "shelved": [{"change": 7, "description": "half done\n"}],
            "untracked": [{"path": "/mnt/w/n\x1b", "action": "add", "depot_file": ""}],
            "counts": {"untracked": {"count": 3}},
        }
    )
    assert capsys.readouterr().err == (
        "Opened (1):\n  //depot/a (edit)\nShelved (1):\n  change 7: half done\n"
        "Untracked (3):\n  /mnt/w/n? (add)\n  … and 2 more\n"
    )


def test_an_argument_that_cannot_be_sent_is_a_mistake() -> None:
    for wrong in ("", "\udcff"):
        with pytest.raises(argparse.ArgumentTypeError):
            cloneyard.word(wrong)


def test_every_exit_code_is_documented() -> None:
    assert cloneyard.__doc__ is not None
    codes = cloneyard.__doc__.partition("exit codes:")[2].split("\n")
    told = {int(line.split()[0]) for line in codes if line.strip()}
    assert told == {cloneyard.DONE, *cloneyard.WORDS}


def test_it_runs_on_python_3_8_with_nothing_installed() -> None:
    source = Path(cloneyard.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert imported <= sys.stdlib_module_names
