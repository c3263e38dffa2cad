"""`?wait=SECONDS`: hold the answer until a workspace or a bisection has settled.

Each held answer takes a thread of the web server, so their number is limited per
process and per person. Beyond that the answer comes at once, with `Retry-After`.
Downloads share the same places (`lib/places.py`).
"""

from __future__ import annotations

import time
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.response import Response

from provisioner.accounts.models import User
from provisioner.api.fields import WorkedOutOnce
from provisioner.lib.places import PLACES

LONGEST_WAIT_SECONDS = 60
FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 0.5
# Sooner, a rush of those who were not held would take the threads all the same, and
# a hundred jobs with one token would come to its limit a minute.
ASK_AGAIN_SECONDS = 5


def ask_again_unless(was_held: bool, response: Response) -> Response:
    """Return the answer, with status 202 and Retry-After if it was not held."""
    if not was_held:
        response.status_code = 202
        response["Retry-After"] = str(ASK_AGAIN_SECONDS)
    return response


def wait_while(moving: QuerySet[Any], *, seconds: float, by: User) -> bool:
    """Wait while the query has a row, at most for a time.

    Call it outside any transaction: each check is a statement of its own, between
    growing pauses, so only the caller's thread is held. The query is compiled once,
    which takes longer than running it.
    """
    look, values = moving.order_by().values("pk")[:1].query.sql_with_params()
    deadline = time.monotonic() + seconds
    pause = FIRST_PAUSE_SECONDS
    if seconds <= 0 or not _finds(look, values):
        return True
    with PLACES.one_for(by.pk) as has_place:
        while has_place and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(pause, left))
            pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)
            if not _finds(look, values):
                break
    return has_place


def _finds(look: str, values: tuple[Any, ...]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(look, values)
        return cursor.fetchone() is not None


class WaitQuery(WorkedOutOnce):
    wait = serializers.IntegerField(
        min_value=0,
        max_value=LONGEST_WAIT_SECONDS,
        default=0,
        help_text="Seconds to hold the answer until the workspace has settled. The "
        "status code tells what was requested, the state in the body how "
        "it ended. If too many answers are held, yours comes at once: 202 "
        "with `Retry-After`.",
    )
