"""50 simultaneous claims from a warm pool of 30, and claims one at a time.

Prints one JSON object. Everything of `make demo` runs below a directory that is gone
afterwards: the lab, an embedded PostgreSQL, a worker, a web server of two processes
with 16 threads each. A pool of 40 is filled for the account `ci`; ten jobs ask one
after the other, then fifty at once, each with its own Idempotency-Key, by
`POST /api/v1/workspaces`. Seconds are those of the whole answer, as a job sees them;
`cpu_ms_of_each` is what the web server's processes used for each of the fifty.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.request import Request, urlopen

from shared.demos import Running, demo_of_its_own
from shared.processes import processor_seconds
from shared.verdicts import Limit, exactly, load, say

ALONE, SIZE, CLAIMS = 10, 30, 50
AT_MOST_SECONDS = 1.0
FILLED_WITHIN_SECONDS = 900.0


@dataclass(frozen=True)
class Answer:
    """What a job got, and how long it waited for it."""

    seconds: float
    code: int
    body: dict[str, Any]

    @property
    def is_warm(self) -> bool:
        return self.code == 201 and bool(self.body["start"]["warm"])


Ask = Callable[[str], Answer]


def main() -> None:
    load_before = load()
    with demo_of_its_own() as running:
        figures = measure(running)
    say(
        "warm_pool",
        figures=figures,
        limits={
            "warm": exactly(SIZE),
            "cold": exactly(CLAIMS - SIZE),
            "shared": exactly(0),
            "warm_p95_seconds": Limit(at_most=AT_MOST_SECONDS),
            "alone_p95_seconds": Limit(at_most=AT_MOST_SECONDS),
        },
        load_before=load_before,
    )


def measure(running: Running) -> dict[str, Any]:
    """Fill a pool, claim one by one, claim all at once; return what came of it."""
    from provisioner.accounts.models import User
    from provisioner.accounts.tokens import token_create
    from provisioner.pools.actions import pool_create, pool_update

    admin = User.objects.get(username="admin")
    ci = User.objects.get(username="ci")
    _, secret = token_create(by=ci)
    pool = pool_create(
        by=admin,
        template=running.template,
        purpose="ci",
        owner=ci,
        size=ALONE + SIZE,
    )
    filled_in = settle(pool, size=ALONE + SIZE)
    address = f"{running.demo.url}/api/v1/workspaces"
    ask = job(address, secret, template=running.template.pk)
    alone = [ask(f"alone {number}") for number in range(ALONE)]
    pool_update(by=admin, pool=pool, size=SIZE)
    settle(pool, size=SIZE)
    web = running.child("web").process.pid
    used = processor_seconds(web)
    answers = at_once(ask)
    used = processor_seconds(web) - used
    warm = [each for each in answers if each.is_warm]
    cold = [each for each in answers if not each.is_warm]
    return {
        "warm": len(warm),
        "cold": sum(each.code == 202 for each in cold),
        "shared": CLAIMS - len({each.body.get("id") for each in answers}),
        **spread("alone", alone),
        **spread("warm", warm),
        **spread("cold", cold),
        "cpu_ms_of_each": round(1000 * used / CLAIMS, 1),
        "seconds_saved": round(sum(a.body["start"]["seconds_saved"] for a in warm), 1),
        "filled_in_seconds": round(filled_in, 1),
    }


def spread(name: str, answers: list[Answer]) -> dict[str, float]:
    """Return how long these answers took."""
    seconds = [answer.seconds for answer in answers]
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return {
        f"{name}_p50_seconds": round(statistics.median(seconds), 3),
        f"{name}_p95_seconds": round(p95, 3),
        f"{name}_longest_seconds": round(max(seconds), 3),
    }


def settle(pool: Any, *, size: int) -> float:
    """Have a pool at its size, swept more often than by the clock; say how long."""
    from provisioner.pools import queries as pool_queries
    from provisioner.pools.sweeps import sweep_pools
    from provisioner.workspaces.models import Workspace

    began = time.monotonic()
    alive = pool_queries.members_of(pool).filter(state__in=pool_queries.ALIVE)
    while True:
        states = list(alive.values_list("state", flat=True))
        if states == [Workspace.State.READY] * size:
            return time.monotonic() - began
        if time.monotonic() - began > FILLED_WITHIN_SECONDS:
            raise SystemExit(f"The pool is not settled after all that time: {states}")
        sweep_pools(timestamp=0)
        time.sleep(0.5)


def job(address: str, secret: str, *, template: int) -> Ask:
    """Return how a job asks for a workspace, with a key of its own."""
    body = json.dumps({"template": template, "purpose": "ci", "lease": 3600}).encode()

    def ask(key: str) -> Answer:
        request = Request(  # noqa: S310 - our own loopback address
            address,
            data=body,
            method="POST",
            headers={
                "Authorization": f"Bearer {secret}",
                "Content-Type": "application/json",
                "Idempotency-Key": key,
            },
        )
        began = time.monotonic()
        with urlopen(request, timeout=120) as answer:  # noqa: S310
            said = answer.read()
            return Answer(time.monotonic() - began, answer.status, json.loads(said))

    return ask


def at_once(ask: Ask) -> list[Answer]:
    """Let all jobs ask at the same moment."""
    together = threading.Barrier(CLAIMS)

    def one(number: int) -> Answer:
        together.wait()
        return ask(f"job {number}")

    with ThreadPoolExecutor(CLAIMS) as executor:
        return list(executor.map(one, range(CLAIMS)))


if __name__ == "__main__":
    main()
