"""Signals from mirrors to the features above them."""

from __future__ import annotations

from django.dispatch import Signal

before_creating = Signal()
"""A mirror is about to be created (template, site, aggregate).

`aggregate` is "" if the site chooses. Receivers may raise a refusal.
"""

before_deleting = Signal()
"""A mirror is about to be deleted (mirror): receivers may raise a refusal."""
