"""500 requests for workspaces at once through the API, while a person reads pages.

Prints one JSON object. Everything of `make demo` runs below a directory that is gone
afterwards: one web server, one worker for each processor, the lab and PostgreSQL share
the processors. Twenty scripts of the account `ci` send 500 requests as fast as they are
answered; meanwhile one browser reads a person's workspaces and the templates over and
over. A request that is answered 429 or 503 is sent again after its Retry-After. The
numbers are BURST_REQUESTS and BURST_SCRIPTS.
"""

from __future__ import annotations

import json
import os
import statistics
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from shared.demos import Running, demo_of_its_own
from shared.verdicts import Limit, exactly, load, say

REQUESTS = int(os.environ.get("BURST_REQUESTS", "500"))
SCRIPTS = int(os.environ.get("BURST_SCRIPTS", "20"))
WORKERS = os.cpu_count() or 1
GIVE_UP_SECONDS = 3600.0
TRIES = 60
PAGES = ("/", "/templates/")


def main() -> None:
    load_before = load()
    with demo_of_its_own(clones_at_once=True) as running:
        figures = measure(running)
    say(
        "burst",
        figures=figures,
        limits={
            "accepted": exactly(REQUESTS),
            "different": exactly(REQUESTS),
            "ready": exactly(REQUESTS),
            "server_errors": exactly(0),
            "page_errors": exactly(0),
            "displaced_p95": Limit(at_most=REQUESTS / 10),
        },
        load_before=load_before,
    )


def measure(running: Running) -> dict[str, Any]:
    """Send all of them, and wait until all are made."""
    from provisioner.accounts.models import User
    from provisioner.accounts.tokens import token_create

    running.demo.children += [
        running.child("worker").started_again() for _ in range(WORKERS - 1)
    ]
    _, secret = token_create(by=User.objects.get(username="ci"))
    reader = Reader(running.demo.url)
    reader.start()
    began = time.monotonic()
    codes: Counter[int] = Counter()

    def ask(number: int) -> tuple[float, int]:
        sent = time.monotonic()
        body = _post(running, secret, f"burst {number}", codes)
        return time.monotonic() - sent, body["id"]

    with ThreadPoolExecutor(SCRIPTS) as executor:
        answers = list(executor.map(ask, range(REQUESTS)))
    accepted_in = time.monotonic() - began
    pages_meanwhile = len(reader.seconds)
    _until_ready()
    ready_in = time.monotonic() - began
    reader.stopping.set()
    reader.join()
    return {
        "accepted": codes[202] + codes[201],
        "different": len({pk for _, pk in answers}),
        "accepted_in_seconds": round(accepted_in, 1),
        **_spread("answer", [seconds for seconds, _ in answers]),
        "sent_again": codes[429] + codes[503],
        "server_errors": sum(codes[code] for code in codes if code >= 500) - codes[503],
        "ready_in_seconds": round(ready_in, 1),
        **_order(),
        "pages_while_accepting": pages_meanwhile,
        "page_errors": reader.errors,
        **_spread("page", reader.seconds),
    }


def _post(
    running: Running, secret: str, key: str, codes: Counter[int]
) -> dict[str, Any]:
    """Send a request, and send it again while the server says so."""
    request = Request(  # noqa: S310 - our own loopback address
        f"{running.demo.url}/api/v1/workspaces",
        data=json.dumps({"template": running.template.pk, "purpose": "ci"}).encode(),
        method="POST",
        headers={
            "Authorization": f"Bearer {secret}",
            "Content-Type": "application/json",
            "Idempotency-Key": key,
        },
    )
    for _ in range(TRIES):
        try:
            with urlopen(request, timeout=300) as answer:  # noqa: S310
                codes[answer.status] += 1
                body: dict[str, Any] = json.loads(answer.read())
                return body
        except HTTPError as error:
            codes[error.code] += 1
            if error.code not in (429, 503):
                raise
            time.sleep(float(error.headers.get("Retry-After", "1")))
    raise SystemExit("A request was refused all the time.")


class Reader(threading.Thread):
    """A person who reads pages, signed in, one after the other."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.stopping = threading.Event()
        self.seconds: list[float] = []
        self.errors = 0

    def run(self) -> None:
        from django.test import Client

        from provisioner.accounts.models import User

        browser = Client()
        browser.force_login(User.objects.get(username="alice"))
        cookies = "; ".join(f"{k}={v.value}" for k, v in browser.cookies.items())
        while not self.stopping.wait(0.2):
            for page in PAGES:
                request = Request(self._url + page, headers={"Cookie": cookies})  # noqa: S310
                began = time.monotonic()
                try:
                    with urlopen(request, timeout=60) as answer:  # noqa: S310
                        answer.read()
                except OSError:
                    self.errors += 1
                self.seconds.append(time.monotonic() - began)


def _until_ready() -> None:
    from provisioner.workspaces.models import Workspace

    ends = time.monotonic() + GIVE_UP_SECONDS
    while Workspace.objects.filter(state=Workspace.State.PROVISIONING).exists():
        if time.monotonic() > ends:
            raise SystemExit("Not all are ready after all that time.")
        time.sleep(1.0)


def _order() -> dict[str, Any]:
    """Return how many are ready, and by how many places they left the order asked."""
    from provisioner.workspaces.models import Workspace

    ready = Workspace.objects.filter(state=Workspace.State.READY, purpose="ci")
    asked = list(ready.order_by("pk").values_list("pk", flat=True))
    place = {pk: number for number, pk in enumerate(asked)}
    ended = ready.order_by("ready_at", "pk").values_list("pk", flat=True)
    displaced = [float(abs(place[pk] - n)) for n, pk in enumerate(ended)]
    p95 = statistics.quantiles(displaced, n=20, method="inclusive")[-1]
    return {"ready": len(asked), "displaced_p95": p95, "displaced": max(displaced)}


def _spread(name: str, seconds: list[float]) -> dict[str, float]:
    p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
    return {
        f"{name}_p50_seconds": round(statistics.median(seconds), 3),
        f"{name}_p95_seconds": round(p95, 3),
        f"{name}_longest_seconds": round(max(seconds), 3),
    }


if __name__ == "__main__":
    main()
