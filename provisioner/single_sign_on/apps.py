from __future__ import annotations

from django.apps import AppConfig


class SingleSignOnConfig(AppConfig):
    name = "provisioner.single_sign_on"
