"""The first error of a build's log is what people are shown of it."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest

from provisioner.engine.logs import error_lines
from provisioner.engine.logs.error_lines import (
    PatternInvalid,
    check_patterns,
    find_error,
)
from provisioner.engine.logs.excerpt import (
    LONGEST_LINE,
    Excerpt,
    error_alone,
    excerpt_of_log,
)

ERRORS = {
    "gcc": "src/a.c:12:5: error: 'x' undeclared (first use in this function)",
    "gcc, fatal": "src/a.c:1:10: fatal error: foo.h: No such file or directory",
    "colored": "\x1b[1msrc/a.c:12:5: \x1b[31merror:\x1b[0m expected ';'",
    "msvc": r"C:\src\a.cpp(12): error C2065: 'x': undeclared identifier",
    "msvc linker": "main.obj : fatal error LNK1120: 1 unresolved externals",
    "csharp": "Program.cs(3,5): error CS0103: The name 'x' does not exist",
    "rustc": "error[E0425]: cannot find value `x` in this scope",
    "ld": "a.o: in function `main': undefined reference to `foo'",
    "maven": "[ERROR] Failed to execute goal org.apache.maven.plugins",
    "gradle": "FAILURE: Build failed with an exception.",
    "ninja": "FAILED: obj/a.o",
    "maven, with a time": "[2026-11-24 10:00:00] [ERROR] COMPILATION ERROR :",
    "msbuild": r"3>C:\src\a.cpp(12,5): error C2065: 'x': undeclared identifier",
    "ant": "    [javac] /src/A.java:3: error: ';' expected",
    "bazel": "ERROR: /src/BUILD:3:10: Compiling a.cc failed",
    "bazel, with times": "(12:00:01) ERROR: /src/BUILD:3:10: Compiling a.cc failed",
    "unreal": "LogShaderCompilers: Error: Failed to compile shader",
    "unreal, with times": "[2026.11.24-10.00.00:123][ 12]LogInit: Error: No module",
    "cmake": "CMake Error at CMakeLists.txt:3 (find_package):",
    "python": "Traceback (most recent call last):",
    "npm": "npm ERR! code ELIFECYCLE",
}
NO_ERRORS = [
    "gcc -Werror -c error.c -o error.o",
    "    0 Error(s)",
    "Build finished: no errors",
    "a.c:3:1: warning: error: is only a word here",
    "Compiling error_handling.cpp",
]


def log_of(tmp_path: Path, *lines: str) -> Path:
    log = tmp_path / "build.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    return log


@pytest.mark.parametrize("tool", ERRORS)
def test_the_first_error_of_a_tool_is_found(tool: str, tmp_path: Path) -> None:
    noise = [f"compiling {number}" for number in range(50)]
    log = log_of(tmp_path, *noise, ERRORS[tool], *noise, "make: *** [all] Error 2")

    found = excerpt_of_log(log)

    assert found.line_number == 51
    assert found.lines[:2] == ("compiling 48", "compiling 49")
    assert found.lines[3:] == tuple(noise[:4])
    assert str(found).startswith("First error, line 51 of the log:\n")


@pytest.mark.parametrize("line", NO_ERRORS)
def test_what_only_has_the_word_is_no_error(line: str, tmp_path: Path) -> None:
    log = log_of(tmp_path, line, "a", "src/a.c:12:5: error: here", "b")

    assert excerpt_of_log(log).line_number == 3


def test_a_hint_counts_where_no_tool_says_error(tmp_path: Path) -> None:
    log = log_of(tmp_path, "one", "/bin/sh: 1: cmake: not found", "two")

    assert excerpt_of_log(log).line_number == 2


def test_without_an_error_the_last_lines_are_quoted(tmp_path: Path) -> None:
    log = log_of(tmp_path, *(f"line {number}" for number in range(100)))

    found = excerpt_of_log(log)

    assert found.lines == tuple(f"line {number}" for number in range(95, 100))
    assert str(found).startswith("End of the log:\n")


@pytest.mark.parametrize("before", [0, 1, 5])
def test_a_list_quotes_the_error_alone(before: int, tmp_path: Path) -> None:
    log = log_of(tmp_path, *["compiling"] * before, ERRORS["gcc"], "more", "done")
    message = f"It failed.\n{excerpt_of_log(log)}"

    assert error_alone(message) == (
        f"It failed.\nFirst error, line {before + 1} of the log: {ERRORS['gcc']}"
    )
    assert error_alone("It failed.") == "It failed."
    end = Excerpt(lines=("compiling", "Killed"))
    assert error_alone(str(end)) == "End of the log: Killed"


def test_a_log_that_is_empty_or_gone_quotes_nothing(tmp_path: Path) -> None:
    assert excerpt_of_log(tmp_path / "gone.log") == Excerpt(lines=())
    assert str(excerpt_of_log(log_of(tmp_path))) == ""


def test_bytes_of_any_kind_become_text_that_is_safe(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_bytes(b"\xff\x00\x1b]0;title\x07\nerror: \xff" + b"x" * 1000 + b"\n")

    found = excerpt_of_log(log)

    assert found.line_number == 2
    assert all(len(line) <= LONGEST_LINE for line in found.lines)
    assert "\0" not in "".join(found.lines)


def test_a_pattern_of_the_template_comes_before_what_tools_say(tmp_path: Path) -> None:
    log = log_of(tmp_path, "a.c:1:1: error: ignored", "one", "PANIC 12: here", "two")

    assert excerpt_of_log(log, own=[r"panic \d+"]).line_number == 3
    assert excerpt_of_log(log, own=["not there"]).line_number == 1


def test_an_error_far_behind_a_hint_counts_more(tmp_path: Path) -> None:
    log = log_of(tmp_path, "sh: x: not found", *["fine"] * 5000, "error: here")

    assert excerpt_of_log(log).line_number == 5002
    assert excerpt_of_log(log).lines == ("fine", "fine", "error: here")


@pytest.mark.parametrize("pattern", ["(", "a(?=b)", "x{1000}{1000}", "[z-a]", "\\1"])
def test_a_pattern_that_cannot_be_searched_for_is_refused(pattern: str) -> None:
    with pytest.raises(PatternInvalid, match="is not a valid pattern"):
        check_patterns(["fine", pattern])


def test_a_pattern_that_would_take_for_ever_elsewhere_takes_no_time(
    tmp_path: Path,
) -> None:
    log = log_of(tmp_path, "a" * 30_000, "error: here")

    began = time.thread_time()  # however busy the machine is
    assert excerpt_of_log(log, own=["(a+)+$X", "(a|a)*b"]).line_number == 2
    assert time.thread_time() - began < 10


def test_a_search_stops_in_time_also_before_a_thousand_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path, *["fine"] * 900, "error: here")
    assert find_error(log) is not None

    monkeypatch.setattr(error_lines, "SEARCH_SECONDS", 0)
    assert find_error(log) is None


def test_patterns_that_are_too_large_together_are_refused() -> None:
    large = [rf"{number}[a-z]{{999}}" for number in range(100)]
    with pytest.raises(PatternInvalid, match="too large together"):
        check_patterns(large)
    with pytest.raises(PatternInvalid, match="at most 100"):
        check_patterns(["fine"] * 101)


def test_a_line_without_an_end_takes_little_memory(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_bytes(b"x" * 20_000_000 + b"\nerror: here\n")

    tracemalloc.start()
    found = excerpt_of_log(log)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found.line_number == 2
    assert found.lines[-1] == "error: here"
    assert peak < 2_000_000
