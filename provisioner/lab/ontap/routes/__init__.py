"""The REST resources, one module per family; each has its ``ROUTES``."""

from __future__ import annotations
