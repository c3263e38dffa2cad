"""What a line of the log says of an error: where it was, and no values."""

from __future__ import annotations

import logging
import logging.config

import pytest

from provisioner.logging import logging_config


@pytest.mark.parametrize("as_json", [True, False])
def test_a_traceback_names_no_variable(
    as_json: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    config = logging_config(level="INFO", as_json=as_json)
    handler = logging.StreamHandler()
    formatter = config["formatters"]["event"]
    kind = formatter.pop("()")
    handler.setFormatter(kind(**formatter))
    log = logging.getLogger("test_logging")
    log.addHandler(handler)
    try:
        _fail("Marked-password", log)
    finally:
        log.removeHandler(handler)
    said = capfd.readouterr().err
    assert "ZeroDivisionError" in said
    assert "in _fail" in said
    assert "Marked" not in said


def _fail(password: str, log: logging.Logger) -> None:
    try:
        _ = len(password) / 0
    except ZeroDivisionError:
        log.exception("it_failed")
