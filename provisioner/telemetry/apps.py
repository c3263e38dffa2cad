from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings

from provisioner.lib import tracing
from provisioner.telemetry.recorder import OpenTelemetryRecorder, provider_of


class TelemetryConfig(AppConfig):
    name = "provisioner.telemetry"

    def ready(self) -> None:
        provider = provider_of(
            settings.OTEL_EXPORTER_OTLP_ENDPOINT,
            headers=settings.OTLP_HEADERS,
            part_sampled=settings.OTEL_TRACES_SAMPLER_ARG,
        )
        tracing.record_with(OpenTelemetryRecorder(provider))
