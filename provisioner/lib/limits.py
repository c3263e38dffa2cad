"""How near a limit is, and refusals of what would exceed one. No row is read.

Sentences and codes are the same wherever a limit is met: before anything is made, and
when ONTAP itself refuses.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import NamedTuple

from provisioner.lib.refusals import ActionRefused
from provisioner.lib.sizes import size_text

NEAR_PERCENT = 80


class Limit(NamedTuple):
    """A limit on a number of things or bytes, with its usage.

    `code` is that of its refusal, `subject` whose limit it is. `used` is None if it was
    not measured lately, `allowed` if there is no limit; `needed` is how much one more
    takes. `as_of` is when a measured part was measured. `part` is the
    subject's aggregate or node that it is about, "" for all, or its own aggregate. A
    tuple, because a page looks through thousands for those that are near.
    """

    code: str
    subject: str
    used: int | None
    allowed: int | None
    needed: int = 1
    is_bytes: bool = False
    as_of: dt.datetime | None = None
    part: str = ""

    @property
    def title(self) -> str:
        title = REFUSALS[self.code].title.format(self.subject)
        return f"{title} {self.part}" if self.part else title

    @property
    def is_reached(self) -> bool:
        """Whether there is no room for one more. Unknown usage refuses nobody."""
        if self.used is None or self.allowed is None:
            return False
        return self.used + self.needed > self.allowed

    @property
    def percent(self) -> int | None:
        if self.used is None or self.allowed is None:
            return None
        return 100 * self.used // self.allowed if self.allowed else 100

    @property
    def is_near(self) -> bool:
        return self.percent is not None and self.percent >= NEAR_PERCENT

    @property
    def unit(self) -> str:
        return "bytes" if self.is_bytes else "things"

    @property
    def used_text(self) -> str:
        return self._text(self.used, unknown="not measured")

    @property
    def allowed_text(self) -> str:
        return self._text(self.allowed, unknown="no limit")

    def _text(self, number: int | None, *, unknown: str) -> str:
        if number is None:
            return unknown
        return size_text(number) if self.is_bytes else f"{number:,}"


class LimitReached(ActionRefused):
    """A limit is reached: {used} of {allowed}."""

    code = "limit_reached"
    title = ""  # of the limit, with {} for whose it is

    def __init__(self, limit: Limit, limits: Sequence[Limit] = ()) -> None:
        super().__init__(
            subject=limit.subject,
            part=f" {limit.part}" if limit.part else "",
            used=limit.used_text,
            allowed=limit.allowed_text,
        )
        self.limit = limit
        self.limits = tuple(limits)  # all that were checked


class CloneLimitReached(LimitReached):
    """The template “{subject}” has {used} of the {allowed} clones that its volume can
    have. Retire workspaces of it and empty the trash, or choose another template."""

    code = "clone_limit"
    title = "Clones of the volume of {}"


class SnapshotCloneLimitReached(LimitReached):
    """The snapshot “{subject}” has {used} of the {allowed} clones that it can have.
    Choose another snapshot, or retire workspaces of it and empty the trash."""

    code = "snapshot_clone_limit"
    title = "Clones of snapshot {}"


class VolumeLimitReached(LimitReached):
    """The site “{subject}” has {used} of the {allowed} volumes that it can have. Retire
    workspaces that nobody needs and empty the trash, or ask an administrator."""

    code = "volume_limit"
    title = "Volumes of the SVM"


class NodeVolumeLimitReached(LimitReached):
    """The node{part} of the site “{subject}” has {used} of the {allowed} volumes that
    it can have. Retire workspaces that nobody needs and empty the trash, or ask an
    administrator to move templates to an aggregate of another node."""

    code = "node_volume_limit"
    title = "Volumes of the node"


class SnapshotLimitReached(LimitReached):
    """The template “{subject}” has {used} of the {allowed} snapshots that its volume
    can have. Retire workspaces of old snapshots, and keep fewer of them."""

    code = "snapshot_limit"
    title = "Snapshots of the volume of {}"


class InodesLow(LimitReached):
    """The template “{subject}” has {used} of the {allowed} files that a volume of its
    size can have. Give it a larger volume, then build again."""

    code = "inode_limit"
    title = "Files in the volume of {}"


class SpaceLow(LimitReached):
    """The aggregate{part} of the site “{subject}” has {used} in use, of {allowed} that
    may be used. Retire workspaces that nobody needs and empty the trash, or ask an
    administrator for room.
    """

    code = "space_low"
    title = "Space of the aggregate"


class Overcommitted(LimitReached):
    """The volumes of the site “{subject}” in its aggregate{part} may already grow to
    {used}, of {allowed} that may be promised. Retire workspaces that nobody needs and
    empty the trash, or ask an administrator.
    """

    code = "overcommitted"
    title = "Sizes of all volumes in the aggregate"


class SnapshotSpaceReached(LimitReached):
    """The snapshots of the workspace “{subject}” hold {used} of the {allowed} that
    their policy allows. Beyond that the oldest is deleted. Keep fewer of them, or
    allow more."""

    code = "workspace_snapshots_bytes"
    title = "Snapshots of the workspace {}"


class QuotaReached(LimitReached):
    """You have {used} of the {allowed} workspaces that you may have. Retire one that
    you do not need, or ask an administrator for more.
    """

    code = "quota_workspaces"
    title = "Workspaces of {}"


class QuotaOfBytesReached(LimitReached):
    """Your workspaces take {used} of the {allowed} that they may take, those in the
    trash included. Retire one and purge it from the trash, or ask an administrator
    for more."""

    code = "quota_bytes"
    title = "Space of {}"


class TeamQuotaReached(LimitReached):
    """Your team {subject} has {used} of the {allowed} workspaces that it may have.
    Retire one that nobody needs, or ask an administrator for more."""

    code = "team_quota_workspaces"
    title = "Workspaces of team {}"


class TeamQuotaOfBytesReached(LimitReached):
    """The workspaces of your team {subject} take {used} of the {allowed} that they may
    take, those in the trash included. Retire one and purge it from the trash, or
    ask an administrator for more."""

    code = "team_quota_bytes"
    title = "Space of team {}"


class TokenQuotaReached(LimitReached):
    """This token has {used} of the {allowed} workspaces that it may have at a time.
    Retire one, or wait until the lease of one has ended."""

    code = "token_workspaces"
    title = "Workspaces of the token {}"


REFUSALS: dict[str, type[LimitReached]] = {
    refusal.code: refusal
    for refusal in (
        CloneLimitReached,
        SnapshotCloneLimitReached,
        VolumeLimitReached,
        NodeVolumeLimitReached,
        SnapshotLimitReached,
        InodesLow,
        SpaceLow,
        Overcommitted,
        SnapshotSpaceReached,
        QuotaReached,
        QuotaOfBytesReached,
        TeamQuotaReached,
        TeamQuotaOfBytesReached,
        TokenQuotaReached,
    )
}


def refuse_what_is_reached(limits: Sequence[Limit]) -> None:
    """Refuse if a limit has no room for one more, naming the first.

    Raises: LimitReached.
    """
    refusal = refusal_of(limits)
    if refusal is not None:
        raise refusal


def refusal_of(limits: Sequence[Limit]) -> LimitReached | None:
    """Return the refusal by the first limit that has no room for one more."""
    for limit in limits:
        if limit.is_reached:
            return REFUSALS[limit.code](limit, limits)
    return None


def refuse_what_is_near(limits: Sequence[Limit]) -> None:
    """Refuse if a limit is near: background work leaves the rest to requests.

    Raises: LimitReached.
    """
    for limit in limits:
        if limit.is_near:
            raise REFUSALS[limit.code](limit, limits)
