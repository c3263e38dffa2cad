from __future__ import annotations

from django.apps import AppConfig


class BisectConfig(AppConfig):
    name = "provisioner.bisect"
