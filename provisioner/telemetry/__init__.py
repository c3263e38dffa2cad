"""Traces by OpenTelemetry, installed where OTEL_EXPORTER_OTLP_ENDPOINT is set."""
