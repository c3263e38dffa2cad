"""A workspace request, and its terms."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from provisioner.accounts import permissions
from provisioner.accounts.models import User
from provisioner.accounts.refusals import require_complete
from provisioner.catalog.models import Snapshot, Template
from provisioner.leases import queries as lease_queries
from provisioner.leases.actions.heartbeats import check_heartbeat
from provisioner.leases.actions.leases import end_of_first_lease
from provisioner.leases.queries import Policy
from provisioner.lib import clocks
from provisioner.lib.names import check_name
from provisioner.lib.refusals import InvalidRequest
from provisioner.pools.models import Pool
from provisioner.pools.queries import find_pool
from provisioner.sites.models import Site
from provisioner.sites.models.sites import NEAREST
from provisioner.workspace_requests.site_choice import Nearest, nearest_site, site_for
from provisioner.workspaces.actions.making import choose_snapshot, name_for
from provisioner.workspaces.models import Workspace
from provisioner.workspaces.purposes import client_type_for


@dataclass(frozen=True, kw_only=True)
class WorkspaceRequest:
    """A person's request for a workspace of a template.

    Without a `site` it is cloned at the person's home site if the template has a mirror
    there, else at the template's. With `is_nearest` in place of a `site`, the network
    of the `address` that it comes from counts, too. Without a `snapshot` it gets the
    default of the site, or with a `quality` (built, tested) the newest of at least
    that. Without a `name` one is made from the owner's and the template's. The lease is
    the policy's default, or `lease_seconds`; it ends earlier after `heartbeat_seconds`
    without a heartbeat.
    Requests with the same `request_key` get the workspace of the first.
    """

    by: User
    template: Template
    site: Site | None = None
    is_nearest: bool = False
    address: str | None = None
    name: str = ""
    purpose: str = Workspace.Purpose.DEVELOPMENT
    snapshot: Snapshot | None = None
    quality: str = ""
    wants_reconcile: bool = False
    lease_seconds: int | None = None
    heartbeat_seconds: int | None = None
    request_key: str = ""

    def check(self) -> None:
        """Refuse malformed requests, and those beyond this account or its token.

        Raises: AccountIncomplete, InvalidRequest, OutOfScope.
        """
        require_complete(self.by)
        if self.purpose not in Workspace.Purpose.values:
            raise InvalidRequest(f"There is no purpose “{self.purpose}”.")
        if self.name:
            check_name(self.name)
        if self.quality and self.snapshot is not None:
            raise InvalidRequest("Choose either a snapshot or a quality.")
        if self.quality and self.quality not in Template.WantedQuality.values:
            raise InvalidRequest(f"There is no quality “{self.quality}”.")
        check_heartbeat(self.heartbeat_seconds)
        permissions.require_in_scope(
            self.by, template=self.template, purpose=self.purpose
        )

    @cached_property
    def nearest(self) -> Nearest | None:
        """The nearest site and why, if that was requested."""
        if not self.is_nearest:
            return None
        return nearest_site(
            by=self.by,
            template=self.template,
            address=self.address,
            snapshot=self.snapshot,
            quality=self.quality,
        )

    @cached_property
    def site_chosen(self) -> Site:
        """Where it is cloned.

        Raises: NothingAtSite.
        """
        if self.nearest is not None:
            return self.nearest.site
        return site_for(
            by=self.by,
            template=self.template,
            wanted=self.site,
            snapshot=self.snapshot,
            quality=self.quality,
        )

    @property
    def fingerprint(self) -> str:
        """A digest of the request: equal requests have equal digests."""
        asked = {
            "template": self.template.pk,
            "site": NEAREST if self.is_nearest else self.site and self.site.pk,
            "name": self.name,
            "purpose": str(self.purpose),
            "snapshot": self.snapshot and self.snapshot.pk,
            "quality": self.quality,
            "reconcile": self.wants_reconcile,
            "lease": self.lease_seconds,
            "heartbeat": self.heartbeat_seconds,
        }
        text = json.dumps(asked, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of a request: what to clone, where, and the end of the lease.

    `pool` is the person's warm pool there, or None.
    """

    now: dt.datetime
    policy: Policy
    site: Site
    expires_at: dt.datetime | None
    snapshot: Snapshot
    client_type: str
    pool: Pool | None


def terms_of(request: WorkspaceRequest) -> Terms:
    """Return the terms of a request at the database's time.

    Raises: LeaseTooLong, NoSnapshot, NoGoodSnapshot, NothingAtSite, InvalidRequest,
    PurposeNotSupported, RoutingRuleUnfit.
    """
    template, now = request.template, clocks.database_now()
    site = request.site_chosen
    policy = lease_queries.policy_for(template, request.purpose)
    return Terms(
        now=now,
        policy=policy,
        site=site,
        expires_at=end_of_first_lease(
            by=request.by, policy=policy, lease_seconds=request.lease_seconds, now=now
        ),
        snapshot=choose_snapshot(
            template, request.snapshot, site=site, quality=request.quality
        ),
        client_type=client_type_for(request.purpose, site=site, owner=request.by),
        pool=find_pool(
            by=request.by, template=template, site=site, purpose=request.purpose
        ),
    )


def columns_of(request: WorkspaceRequest, terms: Terms, *, pk: int) -> dict[str, Any]:
    """Return the columns that a request sets, for new clones and claimed ones."""
    name = request.name or name_for(
        pk,
        owner=request.by,
        template=request.template,
        site=terms.site,
        purpose=request.purpose,
    )
    return {
        "token": request.by.token,
        "name": name,
        "site": terms.site,
        "site_because": request.nearest.because if request.nearest else "",
        "request_key": request.request_key,
        "request_fingerprint": request.fingerprint,
        "expires_at": terms.expires_at,
        "heartbeat_seconds": request.heartbeat_seconds,
    }
