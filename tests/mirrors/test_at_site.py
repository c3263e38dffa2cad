"""What a mirror takes at its site: volumes, requests and rights."""

from __future__ import annotations

import itertools

from provisioner.catalog.models import Template
from provisioner.gateways.ontap.polling import wait_until
from provisioner.lab.ontap import records
from provisioner.lib import clocks
from provisioner.limits.queries import limits_of_sites
from provisioner.limits.sweeps import measure
from provisioner.limits.tallies import Tallies
from provisioner.mirrors.actions import mirror_create, mirror_delete
from provisioner.mirrors.models import Mirror
from provisioner.mirrors.sweeps import check_all
from provisioner.sites.models import Site
from tests.support.factories import SiteFactory, TemplateFactory
from tests.support.mirrors import MirrorScene, address_of


def test_a_mirrors_volume_is_ours_at_its_site(mirror_scene: MirrorScene) -> None:
    before = measure(mirror_scene.site)
    mirror = mirror_scene.settled(
        mirror_create(
            by=mirror_scene.by, template=mirror_scene.template, site=mirror_scene.site
        )
    )

    after = measure(mirror.site)

    assert after.volumes == before.volumes + 1
    assert after.volumes_of_others == before.volumes_of_others
    of_site = {each.site: each.limits for each in limits_of_sites(Tallies())}
    used = {limit.code: limit.used for limit in of_site[mirror.site]}
    assert used["volume_limit"] == after.volumes
    volume = mirror_scene.labs.there.get_volume(mirror.volume_uuid)

    def is_measured() -> bool:
        """Return whether the figures are ONTAP's, which come seconds later."""
        measure(mirror.site)
        mirror.refresh_from_db()
        now = mirror_scene.labs.there.get_volume(mirror.volume_uuid)
        return (mirror.actual_size_bytes, mirror.used_bytes) == (
            *(now.size_bytes, now.used_bytes),
        )

    assert wait_until(lambda: is_measured() or None, limit_seconds=30)
    # ONTAP's default for the destination of a mirror.
    assert mirror.grows_to_bytes == volume.size_bytes * 6 // 5
    assert mirror.max_inodes == volume.max_inodes


def test_a_mirror_lives_with_accounts_of_the_svms(mirror_scene: MirrorScene) -> None:
    """With the role of docs/security.md at both ends."""
    Site.objects.update(ontap_user="leastadmin")
    template = Template.objects.get(pk=mirror_scene.template.pk)
    site = Site.objects.get(pk=mirror_scene.site.pk)
    mirror = mirror_scene.settled(
        mirror_create(by=mirror_scene.by, template=template, site=site)
    )
    assert mirror.state == Mirror.State.READY, mirror.status_message
    assert mirror.snapshots.get().state == "available"

    mirror_delete(by=mirror_scene.by, mirror=mirror)

    mirror_scene.settled(mirror)
    assert mirror.state == Mirror.State.DELETED, mirror.status_message
    assert mirror_scene.labs.rows(records.Relationship) == []


def test_mirrors_are_checked_with_one_request_for_each_site(
    mirror_scene: MirrorScene,
) -> None:
    """A second request for a site would be answered with an error."""
    destination = mirror_scene.labs.destination
    sites = [
        mirror_scene.site,
        *(_site(mirror_scene, name) for name in ("oslo", "austin")),
    ]
    templates = TemplateFactory.create_batch(24, site=mirror_scene.template.site)
    for template, site in itertools.product(templates, sites):
        Mirror.objects.create(
            template=template,
            site=site,
            volume_uuid="v",
            relationship_uuid="r",
            state=Mirror.State.READY,
        )
    destination.control.set_faults(
        {"path": "/api/*", "times": len(sites)}, {"path": "/api/*", "status": 500}
    )

    check_all(now=clocks.database_now())

    troubles = Mirror.objects.values_list("trouble", flat=True)
    assert len(troubles) == 72
    assert all(text.startswith("No SnapMirror relationship") for text in troubles)
    destination.control.set_faults({"path": "/api/*", "status": 500})
    check_all(now=clocks.database_now())
    texts = Mirror.objects.values_list("trouble", flat=True)
    assert all("could not be checked" in text for text in texts)


def _site(scene: MirrorScene, name: str) -> Site:
    return SiteFactory.create(
        name=name,
        perforce_server=scene.site.perforce_server,
        **address_of(scene.labs.destination),
    )
