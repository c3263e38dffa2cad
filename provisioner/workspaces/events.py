"""Signals to features above workspaces."""

from __future__ import annotations

from django.dispatch import Signal

workspace_restored = Signal()
"""A workspace came back from the trash (workspace)."""

asks_trash_seconds = Signal()
"""For how long the trash keeps a workspace (workspace): receivers return seconds."""

asks_what_stays = Signal()
"""Which cannot be retired now (workspaces): receivers return refusals by their keys."""

asks_how_to_make = Signal()
"""The operation that retries a workspace (workspace): receivers return its kind."""

clone_goes = Signal()
"""A workspace's clone is about to be deleted (workspace): receivers may raise Busy."""

asks_what_goes_along = Signal()
"""What ends with a workspace (workspace): receivers return a sentence, or ""."""

asks_findings = Signal()
"""What else a check finds (run, check): receivers return findings by kind."""

asks_deadline = Signal()
"""When and how a workspace ends (workspace, now, known): receivers return a deadline.

`known` keeps what was read for one workspace until the next of a list is asked for.
"""
