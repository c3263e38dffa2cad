"""Read how a Perforce server is set up, and judge it by the rules."""

from __future__ import annotations

import socket
from pathlib import Path

from django.db import transaction

from provisioner.gateways import registry
from provisioner.gateways.errors import GatewayError
from provisioner.gateways.hosts.memory import memory_bytes
from provisioner.gateways.hosts.mounts import find_mount
from provisioner.gateways.perforce.types import Filesystem
from provisioner.insight.models import (
    AdviceRule,
    ServerConfiguration,
    ServerFilesystem,
    ServerSetting,
)
from provisioner.insight.rules import CONFIGURABLES, Facts, Place
from provisioner.lib import clocks
from provisioner.lib.storable import storable
from provisioner.sites.models import PerforceServer

ANSWER_WITHIN_SECONDS = 60.0
# Configurables whose values may be secret, wherever the word stands in their names.
_SECRET_WORDS = ("passw", "secret", "token", "key")


def read_configuration(server: PerforceServer) -> None:
    """Read a server's configuration and save it in place of the one before.

    Raises: GatewayError, which is saved as the trouble; what was read before stays.
    """
    gateway = registry.hasty_perforce(server, seconds=ANSWER_WITHIN_SECONDS)
    try:
        version = gateway.get_info().version
        settings = gateway.configuration.read(CONFIGURABLES)
        filesystems = gateway.configuration.filesystems()
        usage = gateway.configuration.usage()
        protections = gateway.configuration.protections()
    except GatewayError as error:
        ServerConfiguration.objects.update_or_create(
            server=server, defaults={"trouble": error.sentence}
        )
        raise
    with transaction.atomic():
        configuration, _ = ServerConfiguration.objects.update_or_create(
            server=server,
            defaults={
                "read_at": clocks.database_now(),
                "trouble": "",
                "version": storable(version),
                "users": usage.users,
                "files": usage.files,
                "protection_lines": protections and protections.lines,
                "wide_protections": protections and protections.wide_count,
                "wide_paths": list(protections.wide) if protections else [],
            },
        )
        configuration.settings.all().delete()
        ServerSetting.objects.bulk_create(
            ServerSetting(
                configuration=configuration,
                name=storable(setting.name),
                value=_shown(setting.name, storable(setting.value)),
                source=storable(setting.source),
            )
            for setting in settings
        )
        _save_filesystems(configuration, filesystems)


def _shown(name: str, value: str) -> str:
    is_secret = any(word in name.lower() for word in _SECRET_WORDS)
    return "***" if is_secret and value else value


def _save_filesystems(
    configuration: ServerConfiguration, found: list[Filesystem]
) -> None:
    """Save them; mount options stay as long as the mount point does."""
    options = {
        each.mount_point: each.mount_options
        for each in configuration.filesystems.exclude(mount_options="")
    }
    configuration.filesystems.all().delete()
    ServerFilesystem.objects.bulk_create(
        ServerFilesystem(
            configuration=configuration,
            name=storable(each.name),
            fs_type=storable(each.fs_type),
            mount_point=storable(each.mount_point),
            percent_used=each.percent_used,
            mount_options=options.get(storable(each.mount_point), ""),
        )
        for each in found
    )


def read_host(server: PerforceServer) -> None:
    """Read memory and mount options of this host, which is the server's."""
    with transaction.atomic():
        configuration, _ = ServerConfiguration.objects.update_or_create(
            server=server,
            defaults={
                "host": socket.gethostname(),
                "host_read_at": clocks.database_now(),
                "memory_bytes": memory_bytes(),
            },
        )
        for filesystem in configuration.filesystems.exclude(mount_point=""):
            mount = find_mount(Path(filesystem.mount_point))
            if mount is not None and str(mount.mount_point) == filesystem.mount_point:
                filesystem.mount_options = ",".join(mount.options)
                filesystem.save(update_fields=["mount_options"])


def facts_of(configuration: ServerConfiguration) -> Facts:
    """Return what the rules look at; reads settings and filesystems."""
    return Facts(
        today=clocks.database_now().date(),
        version=configuration.version,
        settings={each.name: each.value for each in configuration.settings.all()},
        places={
            each.name: Place(
                fs_type=each.fs_type,
                mount_point=each.mount_point,
                percent_used=each.percent_used,
                mount_options=tuple(each.mount_options.split(","))
                if each.mount_options
                else None,
            )
            for each in configuration.filesystems.all()
        },
        users=configuration.users,
        files=configuration.files,
        protection_lines=configuration.protection_lines,
        wide_protections=configuration.wide_protections,
        wide_paths=tuple(configuration.wide_paths),
        many_protections=AdviceRule.of(configuration.server).many_protections,
        memory_bytes=configuration.memory_bytes,
    )
