"""Forgetting the demo: everything of it, and nothing else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


@pytest.fixture
def var(tmp_path: Path, settings: Settings) -> Path:
    """A var directory with something in it; blanks in its name are no reason to err."""
    var = tmp_path / "my var"
    (var / "lab" / "ontap").mkdir(parents=True)
    (var / "lab" / "ontap" / "state.json").write_text("{}")
    settings.VAR_DIR = var
    return var


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").write_text("four years\n")
    return precious


@pytest.fixture
def mount(var: Path, precious: Path) -> Iterator[Callable[[str], Path]]:
    """Return a function that mounts what is precious below var."""
    mounted: list[Path] = []

    def mount(name: str) -> Path:
        point = var / name
        point.mkdir()
        subprocess.run(["mount", "--bind", precious, point], check=True)
        mounted.append(point)
        return point

    yield mount
    for point in reversed(mounted):
        # Lazily, too: pytest removes its directories, and through mounts as well.
        subprocess.run(["umount", "--lazy", point], stderr=subprocess.DEVNULL)


def test_everything_is_removed(var: Path) -> None:
    call_command("clean")

    assert not var.exists()


def test_cleaning_twice_is_cleaning_once(var: Path) -> None:
    call_command("clean")
    call_command("clean")

    assert not var.exists()


def test_a_link_is_removed_and_never_what_it_leads_to(
    var: Path, precious: Path
) -> None:
    (var / "link").symlink_to(precious)

    call_command("clean")

    assert (precious / "thesis.txt").exists()


@pytest.mark.parametrize("argument", ["{var}/lab/ontap", "{var}", "--root={var}/lab"])
def test_nothing_is_removed_while_something_runs_there(
    argument: str, var: Path
) -> None:
    command = ["sh", "-c", "echo ready; read line", argument.format(var=var)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as running:
        assert running.stdout is not None
        # Its words are not in /proc yet when exec has only just been called.
        assert running.stdout.readline() == b"ready\n"
        try:
            with pytest.raises(CommandError, match=r"Still running .*: sh\."):
                call_command("clean")
        finally:
            running.kill()

    assert (var / "lab" / "ontap" / "state.json").exists()


@needs_root
def test_what_is_mounted_is_unmounted_and_kept(
    var: Path, precious: Path, mount: Callable[[str], Path]
) -> None:
    mount("one")
    mount("t\tä")

    call_command("clean")

    assert not var.exists()
    assert (precious / "thesis.txt").exists()


@needs_root
@pytest.mark.parametrize("name", ["busy", "lab/ontap/busy"])
def test_nothing_is_removed_through_a_mount_that_stays(
    name: str, var: Path, precious: Path, mount: Callable[[str], Path]
) -> None:
    busy = mount(name)
    with (
        (busy / "thesis.txt").open(),  # somebody uses it: it cannot be unmounted
        pytest.raises(CommandError, match="was not removed"),
    ):
        call_command("clean")

    assert (precious / "thesis.txt").exists()
    assert (var / "lab" / "ontap" / "state.json").exists()
