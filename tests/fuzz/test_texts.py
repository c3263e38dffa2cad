"""Odd texts of the kinds that break parsers: ours read each, or say why not.

texts.json is the corpus. Whoever finds another one adds it: every parser of a text from
outside reads all of them.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from contextlib import suppress

import pytest
from django.core.exceptions import ValidationError

from provisioner.catalog.snapshot_comments import build_number_of, mark_of
from provisioner.gateways.perforce.paths import escape_path, folded, unescape_path
from provisioner.gateways.perforce.specs import (
    SpecRefused,
    check_client_options,
    check_line_end,
    check_stream,
    check_submit_options,
    check_view,
    form_fields,
    parse_client_spec,
)
from provisioner.gateways.reach import perforce_address
from provisioner.gateways.webhooks.addresses import (
    AddressRefused,
    read_networks,
    read_url,
)
from provisioner.lib.cron_windows import check_windows
from provisioner.lib.refusals import InvalidRequest
from provisioner.lib.schedules import is_schedule, read_schedule
from provisioner.lib.sizes import parse_size
from provisioner.lib.spans import parse_span
from provisioner.lib.storable import as_named, shown, storable
from provisioner.lib.terminal import harmless_page, painted_lines, shown_text
from provisioner.lib.times import parse_date
from provisioner.lib.user_agents import browser_of
from provisioner.lib.weekly import parse_window
from tests.support.odd_texts import READ_WITHIN_SECONDS, TEXTS

TODAY = dt.date(2026, 2, 28)
# What a parser may raise: each says in a sentence what is wrong.
REFUSALS = (
    ValueError,
    ValidationError,
    InvalidRequest,
    SpecRefused,
    AddressRefused,
)

PARSERS: dict[str, Callable[[str], object]] = {
    "address of a webhook": read_url,
    "browser": browser_of,
    "build of a snapshot": build_number_of,
    "client form": parse_client_spec,
    "client options": check_client_options,
    "comment of a snapshot": mark_of,
    "date": lambda text: parse_date(text, today=TODAY),
    "form": form_fields,
    "line end": check_line_end,
    "log": lambda text: list(painted_lines(text)),
    "maintenance window": check_windows,
    "name": as_named,
    "networks": lambda text: read_networks([text]),
    "P4PORT": perforce_address,
    "page": lambda text: harmless_page(text.encode(errors="replace")),
    "path, escaped": lambda text: unescape_path(escape_path(text)),
    "path, folded": folded,
    "printed": shown_text,
    "schedule": lambda text: read_schedule(text, field="cron"),
    "schedule, asked": is_schedule,
    "shown": shown,
    "size": parse_size,
    "span": parse_span,
    "stored": storable,
    "stream": check_stream,
    "submit options": check_submit_options,
    "view": lambda text: check_view((text,)),
    "window": parse_window,
}


@pytest.mark.parametrize("name", PARSERS)
def test_every_odd_text_is_read_or_refused(name: str) -> None:
    started = time.thread_time()  # however busy the machine is
    for text in TEXTS:
        with suppress(*REFUSALS):
            PARSERS[name](text)
    assert time.thread_time() - started < READ_WITHIN_SECONDS


def test_a_path_comes_back_as_it_was() -> None:
    assert [unescape_path(escape_path(text)) for text in TEXTS] == TEXTS


def test_what_is_stored_or_shown_has_no_character_that_harms() -> None:
    for text in TEXTS:
        assert "\0" not in storable(text)
        storable(text).encode()
        page = harmless_page(text.encode(errors="replace")).decode()
        assert not {"\x1b", "\u202e", "\0"} & set(page)
