"""Time limits and sign-in for tests in a real browser."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

# A page waits for real work here: clones, flushes, builds.
SETTLED_WITHIN_MS = 60_000


SignIn = Callable[..., Page]
