"""`?wait=SECONDS` for bisections."""

from __future__ import annotations

from provisioner.accounts.models import User
from provisioner.api.waiting import wait_while
from provisioner.bisect.models import WAITS_FOR_VERDICT, Bisection


def wait_until_asked_or_ended(bisection_id: int, *, seconds: float, by: User) -> bool:
    """Wait until a bisection has ended or waits for a verdict, or the time is over.

    Return False if too many requests wait already, so that this one did not.
    """
    running = Bisection.objects.filter(pk=bisection_id, state=Bisection.State.RUNNING)
    undecided = running.exclude(status_code=WAITS_FOR_VERDICT)
    return wait_while(undecided, seconds=seconds, by=by)
