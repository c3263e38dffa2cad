"""What one poll costs: of a Perforce server by the watch, and of Cloneyard by others.

Prints one JSON object. The lab and an embedded PostgreSQL run below a directory that is
gone afterwards; a template is built, and a workspace asked for that no worker makes.
Each poll is made many times in this process, so `cpu_ms` is that of the product alone;
the queries are counted apart, because counting costs, too. What the Perforce server
does is told by the server itself (-Ztrack); `perforce_rows` are those of its answers.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

from shared.demos import Running, demo_of_its_own
from shared.verdicts import Limit, load, say

ROUNDS = 20
HELD_SECONDS = 5
LAPSE = re.compile(r"--- lapse (\d*\.?\d+)s")


def main() -> None:
    load_before = load()
    with demo_of_its_own() as running:
        figures = measure(running)
    say(
        "poll",
        figures=figures,
        limits={
            "watch_perforce_commands": Limit(at_most=1),
            "watch_perforce_rows": Limit(at_most=1),
            "watch_queries": Limit(at_most=15),
            "workspace_queries": Limit(at_least=1, at_most=8),
            "page_queries": Limit(at_least=1, at_most=10),
        },
        load_before=load_before,
    )


def measure(running: Running) -> dict[str, Any]:
    """Ask for a workspace that nobody makes, and poll; return what that costs."""
    from django.test import Client

    from provisioner.accounts.models import User
    from provisioner.accounts.tokens import token_create
    from provisioner.workspace_requests.actions import workspace_create
    from provisioner.workspace_requests.requests import WorkspaceRequest

    running.child("worker").stop()
    running.child("web").stop()
    figures = watch_poll(running.site.perforce_server)
    alice = User.objects.get(username="alice")
    workspace = workspace_create(WorkspaceRequest(by=alice, template=running.template))
    _, secret = token_create(by=alice)
    api = Client(headers={"host": "localhost", "authorization": f"Bearer {secret}"})
    where = f"/api/v1/workspaces/{workspace.pk}"
    figures |= cost("workspace", lambda: answered(api.get(where)))
    held = f"{where}?wait={HELD_SECONDS}"
    figures |= cost(
        f"held_{HELD_SECONDS}_seconds", lambda: answered(api.get(held)), rounds=1
    )
    page = Client(headers={"host": "localhost"})
    page.force_login(alice)
    path = f"/workspaces/{workspace.pk}/"
    htmx = {"hx-request": "true", "hx-target": "workspace-progress"}
    return figures | cost("page", lambda: answered(page.get(path, headers=htmx)))


def answered(response: Any) -> int:
    """Return how long an answer is."""
    assert response.status_code == 200, response
    return len(response.content)


def watch_poll(server: Any) -> dict[str, Any]:
    """Poll a server that has nothing new; return what its commands used."""
    from provisioner.catalog.models import ServerWatch
    from provisioner.catalog.sweeps.watch import poll
    from provisioner.gateways import registry
    from provisioner.gateways.perforce.connection import (
        Connection,
        TicketHolder,
        connected,
    )

    watch, _ = ServerWatch.objects.get_or_create(server=server)
    poll(watch)
    commands: list[tuple[str, ...]] = []
    run = Connection.run

    def note(self: Connection, *command: str, **how: Any) -> Any:
        commands.append(command)
        return run(self, *command, **how)

    with mock.patch.object(Connection, "run", note):
        poll(watch)
    rows, server_ms = 0, []
    account = registry.perforce_account(server)
    with connected(account, holder=TicketHolder(), tracks=True) as connection:
        for command in commands:
            rows += len(connection.run(*command).records)
            told = "\n".join(connection.tracked)
            server_ms += [1000 * float(found) for found in LAPSE.findall(told)]
    return {
        "watch_perforce_commands": len(commands),
        "watch_perforce_rows": rows,
        "watch_perforce_ms": round(sum(server_ms), 1),
        **cost("watch", lambda: poll(watch)),
    }


def cost(
    name: str, ask: Callable[[], object], *, rounds: int = ROUNDS
) -> dict[str, float]:
    """Return what asking costs; the first time, which makes connections, left out."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    if rounds > 1:
        ask()
    with CaptureQueriesContext(connection) as captured:
        answer = ask()
    queries = len(captured)  # now: the next request begins to count anew
    cpu, clock = [], []
    for _ in range(rounds):
        began = time.thread_time(), time.monotonic()
        ask()
        cpu.append(time.thread_time() - began[0])
        clock.append(time.monotonic() - began[1])
    figures = {
        f"{name}_queries": queries,
        f"{name}_cpu_ms": round(1000 * statistics.median(cpu), 1),
        f"{name}_ms": round(1000 * statistics.median(clock), 1),
    }
    if isinstance(answer, int):
        figures[f"{name}_bytes"] = answer
    return figures


if __name__ == "__main__":
    main()
