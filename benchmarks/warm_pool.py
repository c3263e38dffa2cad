"""50 simultaneous claims from a warm pool of 30, and claims one at a time.

Prints JSON lines. Everything of `make demo` runs below a directory that is gone
afterwards: the lab, an embedded PostgreSQL, a worker, a web server with 16 threads.
A pool of 40 is filled for the account `ci`; ten jobs ask one after the other, then
fifty at once, each with its own Idempotency-Key, by `POST /api/v1/workspaces`. Seconds
are those of the whole answer, as a job sees them.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

ALONE, SIZE, CLAIMS = 10, 30, 50
AT_MOST_SECONDS = 1.0
FILLED_WITHIN_SECONDS = 900.0
FILES = 200


@dataclass(frozen=True)
class Answer:
    """What a job got, and how long it waited for it."""

    seconds: float
    code: int
    body: dict[str, Any]

    @property
    def is_warm(self) -> bool:
        return self.code == 201 and bool(self.body["start"]["warm"])


def main() -> None:
    in_a_place_of_its_own(measure)


def in_a_place_of_its_own(measure: Callable[[Path], None]) -> None:
    """Measure in a directory of our own, and remove it however that ends."""
    place = Path(tempfile.mkdtemp(prefix="cloneyard-bench-", dir="/var/tmp"))
    place.chmod(0o755)
    os.environ["VAR_DIR"] = str(place / "var")
    os.environ.pop("DATABASE_URL", None)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "provisioner.settings")
    os.environ.setdefault("DEBUG", "true")
    os.environ["API_WORKSPACES_PER_MINUTE"] = "1000"
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    # Registered first, so run last: PostgreSQL lets go of its place at exit, too.
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    import django

    django.setup()
    measure(place)


def measure(place: Path) -> None:
    """Fill a pool, claim one by one, claim all at once; say what came of it."""
    from provisioner.accounts.models import User
    from provisioner.accounts.tokens import token_create
    from provisioner.demo.run import Demo, DemoOptions
    from provisioner.workspaces import actions

    source = place / "tree"
    write_tree(source)
    options = DemoOptions(source=source, build="true", ignore="", btrfs="")
    with Demo(options, say=lambda text: print(text, file=sys.stderr)) as demo:
        site = demo.start()
        template, _ = demo.build_template(site, name=demo.fill_depot())
        admin = User.objects.get(username="admin")
        ci = User.objects.get(username="ci")
        _, secret = token_create(by=ci)
        pool = actions.pool_create(
            by=admin, template=template, purpose="ci", owner=ci, size=ALONE + SIZE
        )
        filled_in = settle(pool, size=ALONE + SIZE)
        ask = job(f"{demo.url}/api/v1/workspaces", secret, template=template.pk)
        say("claims one at a time", [ask(f"alone {n}") for n in range(ALONE)])
        actions.pool_update(by=admin, pool=pool, size=SIZE)
        settle(pool, size=SIZE)
        answers = at_once(ask)
    say("claims at once, warm", [each for each in answers if each.is_warm])
    say("claims at once, cold", [each for each in answers if not each.is_warm])
    warm = [each.body["id"] for each in answers if each.is_warm]
    print(
        json.dumps(
            {
                "figure": f"{CLAIMS} claims of {SIZE}",
                "warm": len(warm),
                "cold": sum(each.code == 202 for each in answers),
                "shared": len(answers) - len({each.body.get("id") for each in answers}),
                "seconds_saved": round(
                    sum(a.body["start"]["seconds_saved"] for a in answers if a.is_warm),
                    1,
                ),
                "filled_in_seconds": round(filled_in, 1),
                "load": round(os.getloadavg()[0], 1),
            }
        )
    )


def write_tree(root: Path) -> None:
    root.mkdir()
    for number in range(FILES):
        (root / f"file{number}.txt").write_text(f"line of {number}\n" * 20)


def settle(pool: Any, *, size: int) -> float:
    """Have a pool at its size, swept more often than by the clock; say how long."""
    from provisioner.workspaces import pools
    from provisioner.workspaces.models import Workspace
    from provisioner.workspaces.sweeps.pools import sweep_pools

    began = time.monotonic()
    alive = pools.members_of(pool).filter(state__in=pools.ALIVE)
    while True:
        states = list(alive.values_list("state", flat=True))
        if states == [Workspace.State.READY] * size:
            return time.monotonic() - began
        if time.monotonic() - began > FILLED_WITHIN_SECONDS:
            raise SystemExit(f"The pool is not settled after all that time: {states}")
        sweep_pools(timestamp=0)
        time.sleep(0.5)


def job(address: str, secret: str, *, template: int) -> Any:
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


def at_once(ask: Any) -> list[Answer]:
    """Let all jobs ask at the same moment."""
    together = threading.Barrier(CLAIMS)

    def one(number: int) -> Answer:
        together.wait()
        answer: Answer = ask(f"job {number}")
        return answer

    with ThreadPoolExecutor(CLAIMS) as executor:
        return list(executor.map(one, range(CLAIMS)))


def say(figure: str, answers: list[Answer]) -> None:
    seconds = sorted(answer.seconds for answer in answers)
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    print(
        json.dumps(
            {
                "figure": figure,
                "answers": len(seconds),
                "p50_seconds": round(statistics.median(seconds), 3),
                "p95_seconds": round(p95, 3),
                "longest_seconds": round(seconds[-1], 3),
                "at_most": AT_MOST_SECONDS,
                "holds": p95 < AT_MOST_SECONDS,
                "load": round(os.getloadavg()[0], 1),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
