"""Purposes that are recipes: steps, a result that outlives the sandbox, and its end.

Features above register theirs. A sandbox of any other purpose is created for people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from provisioner.accounts.models import User
from provisioner.sandboxes.models import Sandbox, SandboxOperation


def _nothing(*_: object) -> None:
    """Check nothing, and remove nothing."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a sandbox of a purpose does by itself.

    `operation` creates it, does that, and retires it. `check` refuses a request before
    anything is written. When a sandbox is retired, `clear` removes on its host what was
    left half done, and `left` returns what of it is still there.
    """

    operation: SandboxOperation
    check: Callable[[User, Sandbox], None] = _nothing
    clear: Callable[[Sandbox], None] = _nothing
    left: Callable[[Sandbox], list[str]] = lambda sandbox: []


_FOR_PEOPLE = Recipe(operation=SandboxOperation.CREATE)
_recipes: dict[str, Recipe] = {}


def register(purpose: Sandbox.Purpose, recipe: Recipe) -> None:
    """Register what sandboxes of a purpose do by themselves."""
    _recipes[purpose.value] = recipe


def recipe_of(sandbox: Sandbox) -> Recipe:
    """Return what a sandbox does by itself."""
    return _recipes.get(sandbox.purpose, _FOR_PEOPLE)
