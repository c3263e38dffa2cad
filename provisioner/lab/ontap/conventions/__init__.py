"""What every ONTAP REST resource has in common: fields, filters, pages, bodies."""

from __future__ import annotations
