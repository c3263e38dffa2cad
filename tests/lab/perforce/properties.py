"""How property tests run here: machines with other work to do are no failure."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
