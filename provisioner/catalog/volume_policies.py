"""Settings of templates' volumes: what is wanted, and making ONTAP agree."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any

from provisioner.accounts.models import User
from provisioner.audit_log.actions import record_event
from provisioner.catalog.models import Template, VolumePolicy
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import VolumeSettings, most_inodes
from provisioner.lib.prepared import Prepared
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
    return _OF_SITE.rows(site.pk)


_OF_SITE = Prepared(lambda pk: VolumePolicy.objects.filter(site=pk), keeps_plan=True)


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


def in_force_since(
    template: Template, policies: Iterable[VolumePolicy]
) -> dt.datetime | None:
    """Return since when a template's volume has what the policies say.

    None while one was not applied yet, and where there are none.
    """
    times = [p.applied_at for p in policies if p.template_id in (None, template.pk)]
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def size_with_headroom(
    template: Template, policies: Iterable[VolumePolicy], *, is_for_builds: bool | None
) -> int:
    """Return the size of a new clone: that of its template's volume, and headroom.

    None: the least that a clone has for any purpose.
    """
    merged = _merged(template, policies)
    asked = HEADROOMS if is_for_builds is None else [HEADROOMS[is_for_builds]]
    percent = min(int(merged.get(name, 0)) for name in asked)
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
        message=f"Set in ONTAP for its volume: {settings_text(lacking)}.",
        actor=actor,
    )


def settings_text(settings: VolumeSettings) -> str:
    """Return settings of a volume as people read them, in a row."""
    return ", ".join(
        f"{value} {name}" if name == "inodes" else f"{name} {value}"
        for name, value in setting_texts(settings).items()
    )


def setting_texts(settings: VolumeSettings) -> dict[str, str]:
    """Return the values of settings as text, by their names for people."""
    texts: dict[str, str] = {}
    if settings.autosize_mode is not None:
        mode = VolumePolicy.Autosize(settings.autosize_mode)
        texts["autosize"] = mode.label.lower()
    if settings.autosize_max_bytes is not None:
        texts["autosize up to"] = size_text(settings.autosize_max_bytes)
    if settings.snapshot_reserve_percent is not None:
        texts["snapshot reserve"] = f"{settings.snapshot_reserve_percent} %"
    if settings.guarantee is not None:
        texts["guarantee"] = settings.guarantee
    if settings.fractional_reserve is not None:
        texts["fractional reserve"] = f"{settings.fractional_reserve} %"
    if settings.security_style is not None:
        texts["security style"] = settings.security_style
    if settings.max_inodes is not None:
        texts["inodes"] = f"{settings.max_inodes:,}"
    return texts
