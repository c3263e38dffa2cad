"""Filters of lists: their state is the address, and what makes no sense is left out."""

from __future__ import annotations
