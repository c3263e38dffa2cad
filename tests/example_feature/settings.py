"""The line in INSTALLED_APPS, as settings of their own."""

from __future__ import annotations

from provisioner.settings import *  # noqa: F403
from provisioner.settings import DATABASES, INSTALLED_APPS

INSTALLED_APPS = [*INSTALLED_APPS, "tests.example_feature"]
ROOT_URLCONF = "tests.example_feature.addresses"
DATABASES["default"]["TEST"] = {"NAME": "test_example_feature"}
