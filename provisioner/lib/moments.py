"""Moments as people read them."""

from __future__ import annotations

import datetime as dt

from django.utils import timezone

from provisioner.lib import times


def exact(moment: dt.datetime) -> str:
    """Return a moment in the reader's zone: "Sat 21 Nov 2026, 23:05 CET".

    On pages and in mails that is the reader's zone, elsewhere UTC.
    """
    return times.exact_text(timezone.localtime(moment))


def recorded(moment: dt.datetime) -> str:
    """Return a moment for the audit log: "Sat 21 Nov 2026, 22:05 UTC"."""
    return times.exact_text(moment.astimezone(dt.UTC))
