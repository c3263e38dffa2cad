from __future__ import annotations

from django.apps import AppConfig


class EfficiencyConfig(AppConfig):
    name = "provisioner.efficiency"
