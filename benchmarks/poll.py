"""What one poll costs: of a Perforce server by the watch, and of Cloneyard by others.

Prints JSON lines. The lab and an embedded PostgreSQL run below a directory that is gone
afterwards; a template is built, and a workspace asked for that no worker makes. Each
poll is made many times in this process, so `cpu_ms` is that of the product alone; the
queries are counted apart, because counting costs, too. What the Perforce server does is
told by the server itself (-Ztrack); `perforce_rows` are those of its answers.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

from warm_pool import in_a_place_of_its_own, write_tree

ROUNDS = 20
HELD_SECONDS = 5
LAPSE = re.compile(r"--- lapse (\d*\.?\d+)s")


def main() -> None:
    in_a_place_of_its_own(measure)


def measure(place: Path) -> None:
    """Build a template, ask for a workspace, and poll."""
    from django.test import Client

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
        for child in demo.children:
            if child.name != "lab":
                child.stop()
        watch_poll(site.perforce_server)
        alice = User.objects.get(username="alice")
        workspace = actions.workspace_create(by=alice, template=template)
        _, secret = token_create(by=alice)
        api = Client(headers={"host": "localhost", "authorization": f"Bearer {secret}"})
        where = f"/api/v1/workspaces/{workspace.pk}"
        say("GET a workspace", lambda: answered(api.get(where)))
        held = f"{where}?wait={HELD_SECONDS}"
        say(
            f"GET a workspace, held for {HELD_SECONDS} s",
            lambda: answered(api.get(held)),
            rounds=1,
        )
        page = Client(headers={"host": "localhost"})
        page.force_login(alice)
        path = f"/workspaces/{workspace.pk}/"
        htmx = {"hx-request": "true", "hx-target": "workspace-progress"}
        say("htmx poll of a workspace", lambda: answered(page.get(path, headers=htmx)))


def answered(response: Any) -> int:
    """Return how long an answer is."""
    assert response.status_code == 200, response
    return len(response.content)


def watch_poll(server: Any) -> None:
    """Poll a server that has nothing new, and ask what its commands used."""
    from provisioner.gateways import registry
    from provisioner.gateways.perforce.connection import (
        Connection,
        TicketHolder,
        connected,
    )
    from provisioner.workspaces.models import ServerWatch
    from provisioner.workspaces.sweeps.watch import poll

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
    say(
        "watch poll, nothing new",
        lambda: poll(watch),
        perforce_commands=[" ".join(command) for command in commands],
        perforce_rows=rows,
        perforce_ms=round(sum(server_ms), 1),
    )


def say(
    figure: str, ask: Callable[[], object], *, rounds: int = ROUNDS, **more: object
) -> None:
    """Print what asking costs; the first time, which makes connections, left out."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    if rounds > 1:
        ask()
    with CaptureQueriesContext(connection) as captured:
        answer = ask()
    queries = len(captured)
    cpu, clock = [], []
    for _ in range(rounds):
        began = time.thread_time(), time.monotonic()
        ask()
        cpu.append(time.thread_time() - began[0])
        clock.append(time.monotonic() - began[1])
    line: dict[str, Any] = {
        "figure": figure,
        **more,
        "queries": queries,
        "cpu_ms": round(1000 * statistics.median(cpu), 1),
        "ms": round(1000 * statistics.median(clock), 1),
        **({"answer_bytes": answer} if isinstance(answer, int) else {}),
        "load": round(os.getloadavg()[0], 1),
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
