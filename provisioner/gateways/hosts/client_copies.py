"""A client's work copied to another client's tree, as the owner of both."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from provisioner.gateways.hosts.client_files import SHELVE_WITHIN_SECONDS
from provisioner.gateways.hosts.run_as import run_module_as
from provisioner.gateways.perforce.types import (
    CopyReport,
    MergeReport,
    NotDone,
    OpenedFile,
    OpenReport,
    Part,
    PerforceAccount,
    Shelf,
    ToResolve,
)


def shelve_copies_as(
    account: PerforceAccount,
    *,
    client: str,
    source: str,
    files: Sequence[OpenedFile],
    descriptions: Mapping[str, str],
    uid: int,
    gid: int,
) -> CopyReport:
    """Shelve, through a stand-in, what the account's user has opened on `source`.

    Raises: as PerforceGateway.shelves.shelve_copies; ChildFailed.
    Source: p4 shelve.
    """
    answer = _perforce(
        account,
        uid=uid,
        gid=gid,
        verb="shelve_copies",
        client=client,
        source=source,
        files=[dataclasses.asdict(file) for file in files],
        descriptions=dict(descriptions),
    )
    return CopyReport(
        shelves=tuple(
            Shelf(**{**shelf, "files": tuple(shelf["files"])})
            for shelf in answer["shelves"]
        ),
        not_copied=tuple(NotDone(**item) for item in answer["not_copied"]),
    )


def open_copies_as(
    account: PerforceAccount,
    *,
    client: str,
    shelves: Sequence[Shelf],
    descriptions: Mapping[str, str],
    label: str,
    uid: int,
    gid: int,
) -> OpenReport:
    """Open what the account's shelves hold on a new client.

    Raises: as PerforceGateway.shelves.open_copies; ChildFailed.
    Source: p4 unshelve.
    """
    answer = _perforce(
        account,
        uid=uid,
        gid=gid,
        verb="open_copies",
        client=client,
        shelves=[dataclasses.asdict(shelf) for shelf in shelves],
        descriptions=dict(descriptions),
        label=label,
    )
    return OpenReport(
        changes=answer["changes"],
        put_aside=tuple((place, aside) for place, aside in answer["put_aside"]),
        not_opened=tuple(NotDone(**item) for item in answer["not_opened"]),
    )


def merge_opened_as(
    account: PerforceAccount,
    *,
    client: str,
    change: int,
    parts: Sequence[Part],
    uid: int,
    gid: int,
) -> MergeReport:
    """Merge a submitted change into what the account's user has opened.

    Raises: as PerforceGateway.changes.merge_opened; ChildFailed.
    Source: p4 sync, p4 resolve -am.
    """
    answer = _perforce(
        account,
        uid=uid,
        gid=gid,
        verb="merge_opened",
        client=client,
        change=change,
        parts=[dataclasses.asdict(part) for part in parts],
    )
    return MergeReport(
        merged=tuple(answer["merged"]),
        to_resolve=tuple(ToResolve(**item) for item in answer["to_resolve"]),
        changed=answer["changed"],
        gone=answer["gone"],
    )


def _perforce(
    account: PerforceAccount, *, uid: int, gid: int, **what: Any
) -> dict[str, Any]:
    return run_module_as(
        "provisioner.gateways.perforce.local",
        request={"account": dataclasses.asdict(account), **what},
        uid=uid,
        gid=gid,
        timeout_seconds=SHELVE_WITHIN_SECONDS,
    )
