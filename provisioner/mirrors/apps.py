from __future__ import annotations

from django.apps import AppConfig


class MirrorsConfig(AppConfig):
    name = "provisioner.mirrors"
