"""The verbs that read or write a client's files, run by a process that owns them.

hosts/run_as.py starts it and calls `run`. It must not run as root on files of a user:
Perforce's client writes wherever the server tells it to.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from provisioner.gateways.perforce.connection import permit_files
from provisioner.gateways.perforce.gateway import PerforceGateway
from provisioner.gateways.perforce.types import (
    OpenedFile,
    Part,
    PerforceAccount,
    Shelf,
    SyncProgress,
    TreeSize,
)

Json = dict[str, Any]


def run(request: Json, show: Callable[[Json], None]) -> Json:
    """Run the verb that the request names, with its account and arguments.

    Raises: any GatewayError of the verb.
    """
    permit_files()
    gateway = PerforceGateway(PerforceAccount(**request["account"]))
    return _VERBS[request["verb"]](gateway, request, show)


def _sync(
    gateway: PerforceGateway, request: Json, show: Callable[[Json], None]
) -> Json:
    def tell(progress: SyncProgress) -> None:
        show(dataclasses.asdict(progress))

    report = gateway.files.sync(
        request["client"],
        change=request["change"],
        on_progress=tell,
        replace_leftovers=request["replace_leftovers"],
        parts=[Part(**part) for part in request["parts"]],
        in_batches=request["in_batches"],
        expected=TreeSize(**request["expected"]) if request["expected"] else None,
        on_command=lambda use: show({"lock": dataclasses.asdict(use)}),
    )
    return dataclasses.asdict(report)


def _restore(
    gateway: PerforceGateway, request: Json, show: Callable[[Json], None]
) -> Json:
    files = gateway.files.restore(request["client"], in_batches=request["in_batches"])
    return {"files": files}


def _reconcile(
    gateway: PerforceGateway, request: Json, show: Callable[[Json], None]
) -> Json:
    findings = gateway.files.reconcile_preview(
        request["client"],
        untracked=request["untracked"],
        ignore=tuple(request["ignore"]),
        in_batches=request["in_batches"],
    )
    return {"findings": [dataclasses.asdict(finding) for finding in findings]}


def _shelve(
    gateway: PerforceGateway, request: Json, show: Callable[[Json], None]
) -> Json:
    report = gateway.shelves.shelve_opened(
        request["client"], workspace=request["workspace"]
    )
    return dataclasses.asdict(report)


def _reopen(
    gateway: PerforceGateway, request: Json, show: Callable[[Json], None]
) -> Json:
    report = gateway.shelves.reopen(
        request["client"],
        [OpenedFile(**file) for file in request["files"]],
        descriptions=request["descriptions"],
        shelves=[Shelf(**shelf) for shelf in request["shelves"]],
        empty_changes=request["empty_changes"],
    )
    return dataclasses.asdict(report)


def _shelve_copies(
    gateway: PerforceGateway, request: Json, show: Callable[[Json], None]
) -> Json:
    report = gateway.shelves.shelve_copies(
        request["client"],
        source=request["source"],
        files=[OpenedFile(**file) for file in request["files"]],
        descriptions=request["descriptions"],
    )
    return dataclasses.asdict(report)


def _open_copies(
    gateway: PerforceGateway, request: Json, show: Callable[[Json], None]
) -> Json:
    report = gateway.shelves.open_copies(
        request["client"],
        shelves=[Shelf(**shelf) for shelf in request["shelves"]],
        descriptions=request["descriptions"],
        label=request["label"],
    )
    return dataclasses.asdict(report)


def _merge_opened(
    gateway: PerforceGateway, request: Json, show: Callable[[Json], None]
) -> Json:
    report = gateway.changes.merge_opened(
        request["client"],
        change=request["change"],
        parts=[Part(**part) for part in request["parts"]],
    )
    return dataclasses.asdict(report)


def _populate(
    gateway: PerforceGateway, request: Json, show: Callable[[Json], None]
) -> Json:
    report = gateway.files.populate(
        request["client"],
        since=request["since"],
        change=request["change"],
        on_progress=lambda done, total: show({"done": done, "total": total}),
    )
    return dataclasses.asdict(report)


_VERBS = {
    "populate": _populate,
    "shelve_copies": _shelve_copies,
    "open_copies": _open_copies,
    "merge_opened": _merge_opened,
    "sync": _sync,
    "restore_files": _restore,
    "reconcile_preview": _reconcile,
    "shelve_opened": _shelve,
    "reopen": _reopen,
}
