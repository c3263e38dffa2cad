"""The compiled walk is built once, and run only where nobody else can change it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from provisioner.gateways.hosts.ownership import change_ownership
from provisioner.gateways.hosts.removal import remove_contents
from provisioner.gateways.hosts.trees import native
from provisioner.gateways.hosts.trees.run import _warn_that_it_is_slow
from tests.gateways.hosts.trees import (
    GROUP,
    OWNER,
    needs_root,
    owners_below,
    plant,
)

SLOW_CALLS = Path(__file__).parents[3] / "benchmarks/slow_chown.c"
needs_compiler = pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where nothing has been built yet."""
    monkeypatch.setattr(native, "PLACE", tmp_path / "libexec")
    return tmp_path / "libexec"


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which the program was built."""
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("compiled") / "libexec"
        patch.setattr(native, "PLACE", place)
        native.build()
    return place


@pytest.fixture
def program(compiled: Path, place: Path) -> Path:
    """The program, where it has been built."""
    shutil.copytree(compiled, place)
    built = native.find_program()
    assert built is not None
    return built


@needs_compiler
def test_building_twice_compiles_once(place: Path) -> None:
    first = native.build()
    made_at = first.stat().st_mtime_ns
    assert native.build() == first == native.find_program()
    assert first.stat().st_mtime_ns == made_at
    assert [path.name for path in place.iterdir()] == [first.name]


@needs_compiler
@pytest.mark.parametrize("which", ["program", "directory"])
def test_one_that_others_may_change_is_not_run(
    program: Path, place: Path, which: str
) -> None:
    (program if which == "program" else place).chmod(0o777)
    assert native.find_program() is None


@needs_compiler
def test_one_of_another_source_is_not_run(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = shutil.copytree(native.SOURCE, tmp_path / "changed")
    with (changed / "walk.c").open("a") as source:
        source.write("/* changed */\n")
    monkeypatch.setattr(native, "SOURCE", changed)
    assert native.find_program() is None
    assert native.build() != program
    assert not program.exists()


@needs_compiler
def test_what_does_not_compile_leaves_nothing_and_says_so(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "walk.c").write_text("#error that is why\n")
    monkeypatch.setattr(native, "SOURCE", broken)
    said = io.StringIO()
    native.main(said)
    assert "one file at a time" in said.getvalue()
    assert "that is why" in said.getvalue()
    assert list(place.iterdir()) == []


def test_without_a_compiler_it_says_so(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(native.BuildFailed, match="no C compiler"):
        native.build()


def test_an_older_kernel_is_not_asked(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native, "OLDEST_LINUX", (999, 0))
    assert native.find_program() is None


@needs_root
def test_where_none_was_built_it_is_slow_and_says_so_once(
    place: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _warn_that_it_is_slow.cache_clear()
    entries = plant(tmp_path / "clone")
    report = change_ownership(tmp_path / "clone", uid=OWNER, gid=GROUP)
    assert (report.walker, report.done) == ("sequential", entries)
    assert remove_contents(tmp_path / "clone").done == entries - 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "slow" in caplog.text


@needs_root
@needs_compiler
def test_where_one_was_built_it_walks(
    program: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries = plant(tmp_path / "clone")
    report = change_ownership(tmp_path / "clone", uid=OWNER, gid=GROUP)
    assert (report.walker, report.done) == ("compiled", entries)
    assert remove_contents(tmp_path / "clone").done == entries - 1
    assert caplog.records == []


@needs_root
@needs_compiler
def test_where_calls_wait_for_a_server_many_threads_leave_nothing_out(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / "slow_chown.so"
    options = ["-shared", "-fPIC", "-DMILLISECONDS=20", "-ldl"]
    subprocess.run(["cc", str(SLOW_CALLS), *options, "-o", str(shim)], check=True)
    entries = plant(tmp_path / "clone", directories=12, files=12)
    monkeypatch.setenv("LD_PRELOAD", str(shim))

    owned = change_ownership(tmp_path / "clone", uid=OWNER, gid=GROUP)

    assert (owned.done, owned.failed_count) == (entries, 0)
    assert owners_below(tmp_path / "clone") == {(OWNER, GROUP)}
    assert owned.seconds < entries * 0.020  # what one thread would sleep
    assert remove_contents(tmp_path / "clone").done == entries - 1
    assert list((tmp_path / "clone").iterdir()) == []


@needs_compiler
@pytest.mark.parametrize(
    "arguments",
    [
        ["0", "0"],
        ["0", "0", "remove", "5", "5", "0"],
        ["0", "0", "own", "5", "5"],
        ["0", "0", "give", "5", "5", "0"],
        ["x", "0", "own", "5", "5", "0"],
        ["0", "0", "own", "4294967301", "5", "0"],
        ["0", "0", "own", "0", "5", "0"],
    ],
)
def test_the_program_refuses_what_is_no_order(
    program: Path, arguments: list[str]
) -> None:
    with pytest.raises(native.BuildFailed, match=r"usage|Invalid argument"):
        native._run([str(program), str(os.getpid()), *arguments], status=0)
