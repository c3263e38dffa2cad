"""Apply the policies of a site's volumes in ONTAP."""

from __future__ import annotations

from provisioner.accounts.system import system_user
from provisioner.catalog.models import VOLUME_SETTINGS, Template, VolumePolicy
from provisioner.catalog.volume_policies import (
    ensure_settings,
    policies_of,
    wanted_settings,
)
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.lib import clocks
from provisioner.lib.names import TAG_PREFIX
from provisioner.sites.models import Site


def keep_volume_policies(site: Site) -> None:
    """Make the volumes of a site's templates agree with its policies.

    One request asks for all of them, and for no clones. A volume that ONTAP does not
    change leaves the others alone, and its policy says why; it is not in force until
    that succeeds. Safe to repeat.

    Raises: GatewayError if ONTAP could not be asked; what is not in force says why.
    """
    policies = policies_of(site)
    if not policies:
        return
    rows = VolumePolicy.objects.filter(site=site)
    ontap = registry.ontap(site)
    try:
        seen = ontap.list_volume_settings(comment_prefix=f"{TAG_PREFIX}template=")
    except GatewayError as error:
        rows.filter(applied_at=None).update(status_message=str(error))
        raise
    # One without settings leaves all to the site's, and is not shown.
    own = {p.template_id: p.pk for p in policies if p.settings or p.template_id is None}
    failures = dict[int, str]()
    for template in Template.objects.filter(site=site, volume_uuid__in=seen):
        size = template.clone_size_bytes
        try:
            ensure_settings(
                ontap,
                template,
                wanted=wanted_settings(template, policies, size_bytes=size),
                seen=seen[template.volume_uuid],
                actor=system_user(),
            )
        except GatewayError as error:
            of_it = own.get(template.pk) or own[None]
            failures.setdefault(of_it, f"{template.name}: {error}")
    now = clocks.database_now()
    for policy in policies:
        message = failures.get(policy.pk, "")
        since = None if message else policy.applied_at or now
        # What was saved meanwhile is not in force: its own job is queued.
        as_read = {name: getattr(policy, name) for name in VOLUME_SETTINGS}
        unchanged = rows.filter(pk=policy.pk, applied_at=policy.applied_at, **as_read)
        unchanged.update(status_message=message, applied_at=since)
