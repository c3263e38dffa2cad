"""What all verbs of the ONTAP gateway share."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any, Self, TypeVar

from provisioner.gateways.errors import Busy, NotFound
from provisioner.gateways.ontap.connection import Body, OntapConnection, Query
from provisioner.gateways.ontap.errors import problem
from provisioner.gateways.ontap.names import exact_name, path_uuid
from provisioner.gateways.ontap.polling import wait_until
from provisioner.gateways.ontap.types import OntapAccount

JOB_LIMIT_SECONDS = 300.0
EFFECT_LIMIT_SECONDS = 30.0

VOLUMES = "/storage/volumes"
# Error codes of a release that does not know an argument, or a field of a query.
UNEXPECTED_ARGUMENT, INVALID_VALUE = "262179", "262197"

_Seen = TypeVar("_Seen")


def volume_path(uuid: str) -> str:
    """Return the path of a volume in the REST API."""
    return f"{VOLUMES}/{path_uuid(uuid)}"


class Verbs:
    """Verbs for one SVM. Threads may share an instance; it connects on first use.

    A write raises Busy if ONTAP's job takes longer than `job_limit_seconds`, or if
    reads do not show the effect EFFECT_LIMIT_SECONDS later.
    """

    def __init__(
        self, account: OntapAccount, *, job_limit_seconds: float = JOB_LIMIT_SECONDS
    ) -> None:
        self._svm = account.svm
        self._ontap = OntapConnection(account, job_limit_seconds=job_limit_seconds)
        self._job_started: Callable[[str], None] = lambda ontap_job_uuid: None

    def recording_jobs(self, job_started: Callable[[str], None]) -> Self:
        """Return this gateway with a function that it calls for longer ONTAP jobs.

        It gets the UUID of a job that is under way when ONTAP answers, before we wait.
        """
        recording = copy.copy(self)
        recording._job_started = job_started
        return recording

    def close(self) -> None:
        """Close the pooled connections; the gateway stays usable."""
        self._ontap.close()

    def _write(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Body | None = None,
    ) -> None:
        """Send a change and wait until ONTAP's job has succeeded."""
        ended = self._send(method, path, query=query, body=body)
        if ended:
            self._ontap.require_success(ended, operation=f"{method} {path}")

    def _write_until(
        self,
        look: Callable[[], _Seen | None],
        method: str,
        path: str,
        *,
        body: Body,
    ) -> _Seen:
        """Send a change, wait until `look` shows its effect, and return what it shows.

        A job that ONTAP says has ended is asked for only if the effect is not there.

        Raises: Busy.
        """
        ended = self._send(method, path, body=body)
        if ended:
            if (seen := look()) is not None:
                return seen
            self._ontap.require_success(ended, operation=f"{method} {path}")
        return self._wait_for(look)

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Body | None = None,
    ) -> str:
        return self._ontap.write(
            method, path, query=query, body=body, ontap_job_started=self._job_started
        )

    def _in_svm(self) -> dict[str, str]:
        return {"svm.name": exact_name(self._svm)}

    def _find(
        self, path: str, *, name: str, fields: str, in_svm: bool = False
    ) -> dict[str, Any] | None:
        query = {"name": exact_name(name), "fields": fields}
        if in_svm:
            query |= self._in_svm()
        found = self._ontap.get_records(path, query=query)
        return found[0] if found else None

    def _delete(self, path: str, *, query: dict[str, str]) -> None:
        """Delete an object and wait until it is gone. One that is gone is success."""

        def is_gone() -> bool | None:
            try:
                self._ontap.get(path, query={"fields": "uuid"})
            except NotFound:
                return True
            return None

        with contextlib.suppress(NotFound):
            self._write("DELETE", path, query=query)
        self._wait_for(is_gone)

    def _wait_for(self, look: Callable[[], _Seen | None]) -> _Seen:
        """Call `look` until it shows the effect, and return its result.

        Raises: Busy.
        """
        seen = wait_until(look, limit_seconds=EFFECT_LIMIT_SECONDS)
        if seen is None:
            raise problem(
                Busy, "ONTAP reported success, but the change is not visible yet."
            )
        return seen
