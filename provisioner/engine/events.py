"""Signals for features above the engine."""

from __future__ import annotations

from django.dispatch import Signal

attempt_ended = Signal()
"""An attempt at a step (step) has ended, whatever came of it, and asked this much of
Perforce servers (usages). Sent last in the transaction that says how it ended.
"""
