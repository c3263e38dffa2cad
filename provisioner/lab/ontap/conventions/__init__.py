"""What all ONTAP REST resources have in common: fields, filters, pages, bodies."""

from __future__ import annotations
