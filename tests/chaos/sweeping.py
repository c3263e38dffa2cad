"""What workers do at certain times, asked for before its time."""

from __future__ import annotations

import time
from typing import Any

from django.db import Error as DatabaseError
from django.db import connection
from procrastinate.exceptions import ConnectorException
from procrastinate.tasks import Task

from provisioner.engine.deferring import defer_once
from tests.chaos.patience import insist


def sweep_now(task: Task[Any, Any, Any], **arguments: int) -> None:
    """Have a worker run a task of a timer, unless one is going to anyway."""
    asked = arguments or {"timestamp": int(time.time())}
    lock = task.queueing_lock or "-".join(
        ["chaos", task.name, *map(str, arguments.values())]
    )
    job = task.configure(queueing_lock=lock)
    insist(
        lambda: defer_once(job, **asked),
        on=(DatabaseError, ConnectorException),
        between=connection.close,
    )
