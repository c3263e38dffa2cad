"""What a mirror needs of ONTAP at both ends before anything of it is made.

It is asked when a mirror is requested, and again by its first steps: peers, licenses
and room come and go. The functions that steps share raise StepRefused.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from provisioner.catalog.models import Template
from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError, Refused
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import Volume
from provisioner.lib import clocks
from provisioner.lib.refusals import StepRefused
from provisioner.lib.sizes import size_text
from provisioner.mirrors import advice
from provisioner.mirrors.refusals import MirrorSiteUnfit
from provisioner.mirrors.releases import remark_on
from provisioner.sites.models import Site
from provisioner.sites.queries import roomiest, spaces_of

ASKED_WITHIN_SECONDS = 10.0
"""How long a person waits for one answer of ONTAP."""
ALL_WITHIN_SECONDS = 15.0
"""How long for those of both ends together: a process of the web server waits, too."""


def require_connectable(template: Template, site: Site, *, aggregate: str = "") -> None:
    """Refuse a mirror that SnapMirror could not fill, as ONTAP of both ends says.

    No transaction may be open. It takes 15 seconds at most. `aggregate` is where its
    volume will be, "" if the site chooses.

    Raises: MirrorSiteUnfit, also if ONTAP of either end does not answer by then.
    """
    until = time.monotonic() + ALL_WITHIN_SECONDS
    home = template.site
    # Read now: whoever asks may have built the template meanwhile.
    volume_uuid = Template.objects.values_list("volume_uuid", flat=True).get(
        pk=template.pk
    )
    if not volume_uuid:
        raise MirrorSiteUnfit(
            f"{template.name} has no volume yet. Build it, then mirror it."
        )
    with ExitStack() as opened:
        with _asking(home):
            source = opened.enter_context(
                registry.first_ontap(home, seconds=ASKED_WITHIN_SECONDS, until=until)
            )
            require_license(source, home)
            volume = source.get_volume(volume_uuid)
            home_version = _release_of(source)
            svms = [svm.uuid for svm in source.list_svms() if svm.name == home.svm]
        with _asking(site):
            ontap = opened.enter_context(
                registry.first_ontap(site, seconds=ASKED_WITHIN_SECONDS, until=until)
            )
            require_license(ontap, site)
            peered_svm(ontap, here=site, home=home, home_svms=svms)
            aggregate_with_room(ontap, site, volume, chosen=aggregate)
            version = _release_of(ontap)
    if remark := remark_on(
        home=home.name, home_version=home_version, site=site.name, site_version=version
    ):
        raise MirrorSiteUnfit(remark)


def _release_of(ontap: OntapGateway) -> str:
    """Return the version of a cluster, "" if our account may not ask."""
    try:
        return ontap.get_cluster().version_number
    except Refused:
        return ""


@contextmanager
def _asking(site: Site) -> Iterator[None]:
    """Translate what ONTAP of a site says into a refusal.

    Raises: MirrorSiteUnfit.
    """
    try:
        yield
    except StepRefused as refused:
        raise MirrorSiteUnfit(refused.sentence) from refused
    except GatewayError as error:
        raise MirrorSiteUnfit(
            f"ONTAP of {site.name} was asked whether a mirror is possible. {error} "
            "Nothing was made. Try again once that is fixed."
        ) from error


def peered_svm(
    ontap: OntapGateway, *, here: Site, home: Site, home_svms: list[str]
) -> str:
    """Return the SVM of `home` as the destination names it, given its UUID.

    Raises: StepRefused if it is not peered for SnapMirror.
    """
    peers = [peer for peer in ontap.list_svm_peers() if peer.svm_uuid in home_svms]
    peer = peers[0] if peers else None
    if peer is None or peer.state != "peered" or not peer.has_snapmirror:
        raise StepRefused(advice.on_peering(here, home, peer), code="mirror_not_peered")
    return peer.name


def require_license(ontap: OntapGateway, site: Site) -> None:
    """Refuse a cluster without SnapMirror, where our account may ask.

    Raises: StepRefused.
    """
    with suppress(Refused):
        if not ontap.has_license("snapmirror"):
            raise StepRefused(
                f"ONTAP of {site.name} has no SnapMirror license. A storage "
                "administrator installs it (it is part of ONTAP One): system license "
                "add. Then retry.",
                code="mirror_not_licensed",
            )


def aggregate_with_room(
    ontap: OntapGateway, site: Site, source: Volume, *, chosen: str
) -> str:
    """Return where a mirror's volume goes: as chosen, or the site's own aggregate.

    At a site that spreads templates it is otherwise one with more room than the
    template's volume takes, as for templates.

    Raises: StepRefused, NotFound (there is no such aggregate).
    """
    name = chosen or site.aggregate
    with suppress(Refused):  # our account may not ask for aggregates
        if site.spreads_templates and not chosen:
            found = ontap.list_aggregates()
            spaces = spaces_of(site, found, at=clocks.database_now())
            needed = source.used_bytes or 0
            best = roomiest(site, [each for each in spaces if each.room_bytes > needed])
            if best is not None:
                return best.name
        free = ontap.get_aggregate(name).available_bytes
        if source.used_bytes is not None and free <= source.used_bytes:
            raise StepRefused(
                f"The aggregate {name} of {site.name} has "
                f"{size_text(free)} free, and the template's volume takes "
                f"{size_text(source.used_bytes)}. A storage administrator frees space "
                "there; then retry. Or mirror it to another aggregate.",
                code="space_low",
            )
    return name
