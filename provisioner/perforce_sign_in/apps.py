from __future__ import annotations

from django.apps import AppConfig


class PerforceSignInConfig(AppConfig):
    name = "provisioner.perforce_sign_in"
