from __future__ import annotations

from django.apps import AppConfig


class PoolsConfig(AppConfig):
    name = "provisioner.pools"
