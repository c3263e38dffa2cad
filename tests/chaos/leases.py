"""Keeping a workspace without an end, and releasing it, while the web server dies."""

from __future__ import annotations

import threading

from tests.chaos.judge import Fault
from tests.chaos.trial import Stuck, Trial


def keep(trial: Trial, number: int) -> list[Fault]:
    """Keep a trial's workspace, and at times release it again.

    Raises: Stuck.
    """
    reason, found = f"kept by {trial.seed}, {number}", list[Fault]()
    for verb in ("keep", "release") if trial.rng.random() < 0.5 else ("keep",):
        kill = threading.Thread(
            target=trial.world.servers.kill, args=["web"], kwargs={"down_seconds": 0}
        )
        kill.start()
        # Leases have a maximum, so an administrator keeps it.
        by, body = trial.person, None
        if verb == "keep":
            by, body = trial.world.admin, {"reason": reason}
        path = f"/workspaces/{trial._id}/{verb}"
        answer = by.ask("POST", path, body, times=2)
        kill.join()
        # What the first of two requests has released is not kept any more.
        if answer.status != 200 and verb == "keep":
            raise Stuck(f"not kept: {answer.status} {answer.body}")
        found += trial.world.judge.check_lease(trial._reloaded(), reason, verb)
    return found
