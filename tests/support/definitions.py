"""What people type into the forms of templates, servers and sites."""

from __future__ import annotations

from typing import Any


def definition(**fields: Any) -> dict[str, Any]:
    return {
        "description": "The game",
        "view": "//depot/main/... //template/...",
        "stream": "",
        "line_end": "local",
        "client_options": "noallwrite noclobber nocompress unlocked nomodtime normdir",
        "submit_options": "submitunchanged",
        "build_command": "",
        "build_environment": "",
        "bisection_environment": "",
        "build_timeout_seconds": "600",
        "test_command": "",
        "test_timeout_seconds": "300",
        "wanted_quality": "built",
        "ignore_patterns": "",
        "error_patterns": "",
        "volume_size_bytes": "1.5 GiB",
        "snapshots_to_keep": "3",
        **fields,
    }


SERVER = {
    "name": "main-1",
    "kind": "commit",
    "catch_up_seconds": "600",
    "when_behind": "wait-then-fail",
    "p4port": "127.0.0.1:9",
    "p4user": "cloneyard",
    "p4charset": "none",
    "flush_limit": "4",
    "checks_read_access": "on",
}


SITE = {
    "name": "munich-1",
    "ontap_host": "127.0.0.1",
    "ontap_port": "9",
    "ontap_user": "cloneyard",
    "svm": "svm_dev",
    "aggregate": "aggr1",
    "mount_root": "/clones",
    "mounting": "namespace",
    "export_policy": "cloneyard",
    "export_clients": "10.0.0.0/24\r\n10.0.1.7",
    "template_uid": "20000",
    "template_gid": "20000",
    "snapshots_per_volume": "1023",
    "free_percent": "5",
    "reown": "ontap",
    "clones_open_to": "owner",
}
