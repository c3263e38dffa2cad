from __future__ import annotations

from django.apps import AppConfig


class TransferConfig(AppConfig):
    name = "provisioner.transfer"
