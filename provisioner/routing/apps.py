from __future__ import annotations

from django.apps import AppConfig


class RoutingConfig(AppConfig):
    name = "provisioner.routing"
