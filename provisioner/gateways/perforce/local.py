"""The verbs that touch a client's files, in a child that is the owner of the files.

Run by hosts/run_as.py; see hosts/client_files.py for who asks.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from provisioner.gateways.perforce.p4 import P4PerforceGateway
from provisioner.gateways.perforce.types import PerforceAccount, SyncProgress

Json = dict[str, Any]


def run(request: Json, show: Callable[[Json], None]) -> Json:
    """Do what the request's `verb` names; return its result as JSON."""
    gateway = P4PerforceGateway(PerforceAccount(**request["account"]))
    if request["verb"] == "sync":

        def tell(progress: SyncProgress) -> None:
            show(dataclasses.asdict(progress))

        report = gateway.sync(
            request["client"], change=request["change"], on_progress=tell
        )
        return dataclasses.asdict(report)
    if request["verb"] == "reconcile_preview":
        findings = gateway.reconcile_preview(
            request["client"],
            untracked=request["untracked"],
            ignore=tuple(request["ignore"]),
        )
        return {"findings": [dataclasses.asdict(finding) for finding in findings]}
    raise ValueError(f"No such verb: {request['verb']}.")
