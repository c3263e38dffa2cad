"""Moves of volumes to another aggregate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from provisioner.gateways.errors import NotFound, Refused
from provisioner.gateways.ontap import records
from provisioner.gateways.ontap.errors import problem
from provisioner.gateways.ontap.names import exact_name
from provisioner.gateways.ontap.types import Aggregate, VolumeMove
from provisioner.gateways.ontap.verbs import VOLUMES, Verbs, volume_path


class VolumeMoves(Verbs):
    """Where volumes are, and how to move them. It takes an account of the cluster."""

    def list_aggregates(self) -> list[Aggregate]:
        """Return all aggregates, and which of them the SVM may use.

        Raises: NotFound (SVM), Refused (our account may not ask).
        Source: GET /api/storage/aggregates; aggregates of GET /api/svm/svms.
        """
        svm = self._find("/svm/svms", name=self._svm, fields=records.SVM_FIELDS)
        if svm is None:
            raise problem(NotFound, f"There is no SVM {self._svm}.")
        found = self._ontap.get_records(
            "/storage/aggregates", query={"fields": records.AGGREGATE_FIELDS}
        )
        assigned = records.svm(svm).aggregates
        return [
            replace(
                records.aggregate(record),
                is_assigned=not assigned or record["name"] in assigned,
            )
            for record in found
        ]

    def list_moves(self, *, comment_prefix: str) -> list[VolumeMove]:
        """Return where the SVM's volumes are whose comment begins with the prefix.

        Source: GET /api/storage/volumes?comment=.
        """
        query = {
            **self._in_svm(),
            "fields": records.MOVE_FIELDS,
            "comment": f"{exact_name(comment_prefix)}*",
        }
        found = self._ontap.get_records(VOLUMES, query=query)
        moves = [records.volume_move(record) for record in found]
        # ONTAP ignores case in this query.
        return [each for each in moves if each.comment.startswith(comment_prefix)]

    def get_move(self, uuid: str) -> VolumeMove:
        """Return where a volume is, and how far its move is.

        Raises: NotFound.
        Source: GET /api/storage/volumes/{uuid}?fields=movement.
        """
        return records.volume_move(
            self._ontap.get(volume_path(uuid), query={"fields": records.MOVE_FIELDS})
        )

    def start_move(self, uuid: str, *, aggregate: str) -> VolumeMove:
        """Start to move a volume to an aggregate, or resume that. Safe to repeat.

        It goes on in ONTAP until `get_move` says that it is there. Clients see no
        more than a pause of some seconds when it is cut over.

        Raises: NotFound (volume or aggregate), Refused (busy), OutOfSpace.
        Source: PATCH /api/storage/volumes/{uuid} movement.destination_aggregate, or
        movement.state replicating.
        """

        before = self.get_move(uuid)

        def begun() -> VolumeMove | None:
            seen = self.get_move(uuid)
            goes_there = seen.destination == aggregate and (
                # It may have ended again by now.
                seen.is_moving or seen.started_at != before.started_at
            )
            return seen if seen.aggregate == aggregate or goes_there else None

        if (seen := begun()) is not None:
            return seen
        movement: dict[str, Any] = {"destination_aggregate": {"name": aggregate}}
        if before.is_paused and before.destination == aggregate:
            movement = {"state": "replicating"}
        try:
            self._write("PATCH", volume_path(uuid), body={"movement": movement})
        except Refused:
            if (seen_now := begun()) is None:  # somebody else may have started it
                raise
            return seen_now
        return self._wait_for(begun)

    def pause_move(self, uuid: str) -> VolumeMove:
        """Pause the move of a volume, if one runs; `start_move` goes on with it. Safe
        to repeat. Once it is being cut over it may end all the same.

        Raises: NotFound.
        Source: PATCH /api/storage/volumes/{uuid} movement.state paused.
        """
        return self._end_running(
            uuid, state="paused", has_ended=lambda seen: not seen.is_moving
        )

    def stop_move(self, uuid: str) -> VolumeMove:
        """Abort the move of a volume, if one runs; it stays where it is. Safe to
        repeat. Once it is being cut over it may end all the same.

        Raises: NotFound.
        Source: PATCH /api/storage/volumes/{uuid} movement.state aborted.
        """

        return self._end_running(
            uuid,
            state="aborted",
            has_ended=lambda seen: not (seen.is_moving or seen.is_paused),
        )

    def _end_running(
        self, uuid: str, *, state: str, has_ended: Callable[[VolumeMove], bool]
    ) -> VolumeMove:
        def ended() -> VolumeMove | None:
            seen = self.get_move(uuid)
            return seen if has_ended(seen) else None

        if (seen := ended()) is not None:
            return seen
        body = {"movement": {"state": state}}
        try:
            self._write("PATCH", volume_path(uuid), body=body)
        except Refused:
            if (seen := ended()) is None:  # it may have ended meanwhile
                raise
            return seen
        return self._wait_for(ended)
