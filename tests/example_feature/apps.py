from __future__ import annotations

from django.apps import AppConfig


class ExampleFeatureConfig(AppConfig):
    name = "tests.example_feature"
