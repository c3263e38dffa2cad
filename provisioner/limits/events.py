"""Signals to features above limits."""

from __future__ import annotations

from django.dispatch import Signal

site_measured = Signal()
"""The volumes of a site were measured and saved (site, at)."""
