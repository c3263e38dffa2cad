"""Functions that work on somebody's files, and so run as the uid that owns them.

`hosts/run_as.py` calls them in a process of its own, and calls only functions declared
here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

HOUR = 3600.0

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


class Owner(Protocol):
    """The owner of files: a workspace, or whatever else has these ids."""

    @property
    def uid(self) -> int: ...

    @property
    def gid(self) -> int: ...


@dataclass(frozen=True)
class Ids:
    """An owner that is just ids."""

    uid: int
    gid: int


def works_on_files(*, within_seconds: float) -> Callable[[AnyFunction], AnyFunction]:
    """Declare a function that works on an owner's files, with its time limit.

    The time is a limit rather than an estimate: the first sync of a large product takes
    an hour. Its arguments and its result are types of `typed_json`. A callable among
    the arguments returns nothing, or a bool, for which the function waits.
    """

    def declare(function: AnyFunction) -> AnyFunction:
        vars(function)["within_seconds"] = within_seconds
        return function

    return declare


def limit_of(function: Callable[..., Any]) -> float:
    """Return the time limit of a declared function, in seconds.

    Raises: TypeError (it was not declared).
    """
    seconds = getattr(function, "within_seconds", None)
    if seconds is None:
        raise TypeError(f"{function!r} is not declared to work on files.")
    return float(seconds)
