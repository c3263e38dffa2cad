"""The common parts of the company: randomness, time, and rows to be written."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from dataclasses import dataclass

from django.db.models import Model

from provisioner.audit_log.models import Event
from provisioner.demo.company.calendar import Calendar
from provisioner.demo.company.rows import Rows
from provisioner.engine.models import Operation
from provisioner.notify.models import Notification, WebhookDelivery

# These are told in the order of their numbers, too.
BY_AGE: tuple[tuple[type[Model], str], ...] = (
    (Operation, "created_at"),
    (Event, "at"),
    (Notification, "created_at"),
    (WebhookDelivery, "created_at"),
)
DAYS = 180
SEED = 2026


@dataclass(frozen=True, kw_only=True)
class CompanySize:
    """How much there is; `build_share` is the share of the usual number of builds."""

    people: int = 220
    teams: int = 8
    templates: int = 24
    workspaces: int = 950
    build_share: float = 1.0
    deliveries: int = 600
    findings: int = 30
    probe_days: int = DAYS


class Studio:
    """The source of all generated data: the same seed and moment give the same."""

    def __init__(self, size: CompanySize, *, seed: int, now: dt.datetime) -> None:
        self.size = size
        self.chance = random.Random(seed)
        self.calendar = Calendar(now, days=DAYS, chance=self.chance)
        self.rows = Rows()

    @property
    def now(self) -> dt.datetime:
        return self.calendar.now

    def write(self) -> None:
        """Number rows by their time, and write all of them."""
        for model, by in BY_AGE:
            self.rows.number(model, by=by)
        self.rows.write()

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self.chance.getrandbits(128), version=4)

    def digest(self) -> str:
        """Return 64 random hexadecimal digits."""
        return f"{self.chance.getrandbits(256):064x}"

    def happens(self, share: float) -> bool:
        return self.chance.random() < share
