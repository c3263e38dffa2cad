from __future__ import annotations

from django.apps import AppConfig


class ServerLogConfig(AppConfig):
    name = "provisioner.server_log"
