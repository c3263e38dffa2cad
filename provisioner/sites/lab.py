"""Whether a site is the lab's, which is for trying."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from django.conf import settings

from provisioner.sites.models import Site


def points_at_the_lab(site: Site) -> bool:
    ca_file = Path(site.ontap_ca_file).absolute()
    return _is_loopback(site.ontap_host) or ca_file.is_relative_to(
        Path(settings.VAR_DIR) / "lab"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"
