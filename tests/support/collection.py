"""How tests are collected: what is compiled is kept, and what is loaded stays.

Taking assertions apart is three quarters of a collection, and each server that a
test starts would compile the product anew. So the workers share the compiling.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Allocations before the youngest generation is collected; Python's default is 700.
LOOK_AFTER_OBJECTS = 100_000


def keep_what_is_compiled() -> None:
    """Write bytecode, in children, too, whatever the environment asks for."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Let each worker begin elsewhere: it reads what the others have written."""
    with _nothing_is_garbage():
        _import_tests(session.config)
        return (yield)


def _import_tests(config: pytest.Config) -> None:
    worker: dict[str, str] = getattr(config, "workerinput", {})
    if worker:
        files = _test_files(config.args)
        number = int(worker["workerid"].removeprefix("gw"))
        first = len(files) * number // int(worker["workercount"])
        for file in files[first:] + files[:first]:
            module = file.relative_to(ROOT).with_suffix("").parts
            with contextlib.suppress(Exception):  # the collection says what it is
                importlib.import_module(".".join(module))


@contextlib.contextmanager
def _nothing_is_garbage() -> Iterator[None]:
    """Collect tests without looking for garbage, now and in what is there by then.

    Some hundred thousand objects stay until the end, in which the collector would
    look for it again and again.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(LOOK_AFTER_OBJECTS)
        gc.enable()


def _test_files(arguments: list[str]) -> list[Path]:
    named = [ROOT / argument.partition("::")[0] for argument in arguments]
    return [
        file
        for path in named
        for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
    ]
