"""The REST resources: one module per family, each with its ``ROUTES``."""

from __future__ import annotations
