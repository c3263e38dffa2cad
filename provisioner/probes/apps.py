from __future__ import annotations

from django.apps import AppConfig


class ProbesConfig(AppConfig):
    name = "provisioner.probes"
