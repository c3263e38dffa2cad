"""Signals from copies to the features above them."""

from __future__ import annotations

from django.dispatch import Signal

before_copying = Signal()
"""A workspace is about to get a volume at another site (workspace, site).

Receivers may raise a refusal.
"""
