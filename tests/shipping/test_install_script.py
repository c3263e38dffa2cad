"""docker/install.sh refuses what it cannot do before it changes anything."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

SCRIPT: Path = settings.BASE_DIR / "docker/install.sh"
WRONG = [
    ("", "name a --role"),
    ("--role", "--role needs a value"),
    ("--role database", "there is no role database"),
    ("--role host-worker", "host-worker needs a --site"),
    ("--role host-worker --site Munich", "--site Munich is not the name of a site"),
    ("--role web --site munich", "--site is for the role host-worker"),
    ("--role web --allow mounts", "--allow is for the role host-worker"),
    ("--role host-worker --allow root", "nothing to allow that is called root"),
    ("--role web --prefix opt", "--prefix has to begin with /"),
    ("--role web --prefix /", "--prefix has to begin with /"),
    ("--role web --prefix /opt/a&b", "has characters that units cannot have"),
    ("--what", "what is --what?"),
    ("--uninstall --role web", "--uninstall takes no role"),
]
IMPOSSIBLE = [
    ("--uninstall --prefix /opt/nothing-here", "was not made by this script"),
    ("--role web --python no-such-python", "there is no no-such-python"),
    ("--role web --python false", "false is not Python 3.11"),
    (f"--role web --python {sys.executable}", "has to have one wheel"),
]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """The script with nothing beside it."""
    if os.geteuid() != 0:
        pytest.skip("only root can install")
    return Path(shutil.copy(SCRIPT, tmp_path))


def refused(script: Path, words: str) -> tuple[int, str]:
    ran = subprocess.run(
        ["sh", script, *words.split()], capture_output=True, text=True, check=False
    )
    assert ran.stdout == ""
    assert ran.stderr.count("\n") == 1, ran.stderr
    return ran.returncode, ran.stderr


@pytest.mark.parametrize(("words", "says"), WRONG)
def test_wrong_usage_is_one_sentence(script: Path, words: str, says: str) -> None:
    code, said = refused(script, words)
    assert (code, says in said) == (2, True), said


@pytest.mark.parametrize(("words", "says"), IMPOSSIBLE)
def test_what_is_impossible_is_one_sentence(
    script: Path, words: str, says: str
) -> None:
    code, said = refused(script, words)
    assert (code, says in said) == (1, True), said


def test_a_directory_of_somebody_else_is_left_alone(
    script: Path, tmp_path: Path
) -> None:
    for name in ("cloneyard-0.whl", "requirements.lock", "cloneyard-web.service"):
        (tmp_path / name).touch()
    prefix = tmp_path / "opt"
    prefix.mkdir()
    (prefix / "file").touch()

    code, said = refused(
        script, f"--role web --python {sys.executable} --prefix {prefix}"
    )

    assert (code, "has something else in it" in said) == (1, True), said
    assert [path.name for path in prefix.iterdir()] == ["file"]


def test_help_names_each_option(script: Path) -> None:
    ran = subprocess.run(["sh", script, "--help"], capture_output=True, text=True)
    assert ran.returncode == 0
    for option in ("--role", "--site", "--prefix", "--python", "--uninstall"):
        assert option in ran.stdout
