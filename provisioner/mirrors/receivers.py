"""What mirrors stand against."""

from __future__ import annotations

from provisioner.catalog.dependents import Dependent, register_dependent
from provisioner.mirrors.models import Mirror

register_dependent(
    Dependent(
        one="mirror",
        many="mirrors",
        rows=lambda template: Mirror.objects.filter(template=template),
    )
)
