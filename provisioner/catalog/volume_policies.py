"""Settings of templates' volumes: what is wanted, and making ONTAP agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template, VolumePolicy
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import VolumeSettings, most_inodes
from provisioner.lib.sizes import size_text
from provisioner.sites.models import Site

HEADROOMS = ("headroom_percent", "build_headroom_percent")
"""The columns for clones: for development, and for builds and CI."""


GROWTH = ("clone_grow_percent", "clone_grow_max_percent")
"""The columns for full clones for development."""
MAX_GROWTH_PERCENT = 200
"""How large a clone may become, in percent of its template, where nothing is set."""


def policies_of(site: Site) -> list[VolumePolicy]:
    """Return a site's defaults, if it has any, and what its templates have instead."""
    return list(VolumePolicy.objects.filter(site=site))


def wanted_settings(
    template: Template, policies: Iterable[VolumePolicy], *, size_bytes: int
) -> VolumeSettings:
    """Return what a template's volume of this size is to have.

    Autosize stops at a percentage of the template's own size, and never below what the
    volume has.
    """
    merged = _merged(template, policies)
    for of_clones in (*HEADROOMS, *GROWTH):
        merged.pop(of_clones, None)
    percent, inodes = merged.pop("autosize_max_percent", 0), merged.pop("min_inodes", 0)
    grows = merged.get("autosize_mode") not in (None, VolumePolicy.Autosize.OFF)
    if percent and grows:
        most = template.volume_size_bytes * percent // 100
        merged["autosize_max_bytes"] = max(most, size_bytes)
    if inodes:
        merged["max_inodes"] = min(inodes, most_inodes(size_bytes))
    return VolumeSettings(**merged)


def size_with_headroom(
    template: Template, policies: Iterable[VolumePolicy], *, is_for_builds: bool
) -> int:
    """Return the size of a new clone: that of its template's volume, and headroom."""
    percent: int = _merged(template, policies).get(HEADROOMS[is_for_builds], 0)
    return template.clone_size_bytes * (100 + percent) // 100


def grown_size(
    template: Template, policies: Iterable[VolumePolicy], *, size_bytes: int
) -> int | None:
    """Return the size that a full clone of a template grows to, None if it stays."""
    merged = _merged(template, policies)
    by, most = (merged.get(name) for name in GROWTH)
    limit = template.clone_size_bytes * (most or MAX_GROWTH_PERCENT) // 100
    grown = min(size_bytes * (100 + (by or 0)) // 100, limit)
    return grown if grown > size_bytes else None


def _merged(template: Template, policies: Iterable[VolumePolicy]) -> dict[str, Any]:
    """Return the settings for a template; its own go before those of its site."""
    merged: dict[str, Any] = {}
    for policy in sorted(policies, key=lambda each: each.template_id is not None):
        if policy.template_id in (None, template.pk):
            merged |= policy.settings
    return merged


def ensure_settings(
    ontap: OntapGateway,
    template: Template,
    *,
    wanted: VolumeSettings,
    seen: VolumeSettings,
    actor: User | None,
) -> None:
    """Give a template's volume what it lacks of its settings, and record it.

    Raises: GatewayError.
    """
    lacking = wanted.lacking_in(seen)
    if not lacking:
        return
    ontap.set_volume_settings(template.volume_uuid, lacking)
    record_event(
        template,
        kind="template_volume_settings",
        message=f"Set in ONTAP for its volume: {', '.join(_said(lacking))}.",
        actor=actor,
    )


def _said(settings: VolumeSettings) -> Iterator[str]:
    if settings.autosize_mode is not None:
        yield f"autosize {VolumePolicy.Autosize(settings.autosize_mode).label.lower()}"
    if settings.autosize_max_bytes is not None:
        yield f"autosize up to {size_text(settings.autosize_max_bytes)}"
    if settings.snapshot_reserve_percent is not None:
        yield f"snapshot reserve {settings.snapshot_reserve_percent} %"
    if settings.guarantee is not None:
        yield f"guarantee {settings.guarantee}"
    if settings.fractional_reserve is not None:
        yield f"fractional reserve {settings.fractional_reserve} %"
    if settings.security_style is not None:
        yield f"security style {settings.security_style}"
    if settings.max_inodes is not None:
        yield f"{settings.max_inodes:,} inodes"
