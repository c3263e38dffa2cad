"""Warm pools and the deletion of templates."""

from __future__ import annotations

from provisioner.catalog.dependents import Dependent, register_dependent
from provisioner.pools.models import Pool

register_dependent(
    Dependent(
        one="warm pool",
        many="warm pools",
        rows=lambda template: Pool.objects.filter(template=template),
    )
)
