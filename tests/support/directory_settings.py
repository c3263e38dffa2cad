"""The settings of a directory that would work."""

from __future__ import annotations

from typing import Any

GOOD: dict[str, Any] = {
    "urls": ["ldaps://ldap.example.com"],
    "name": "",
    "start_tls": True,
    "ca_file": "",
    "bind_dn": "cn=cloneyard,dc=example,dc=com",
    "bind_password": "secret",
    "direct_bind": "",
    "user_base": "ou=people,dc=example,dc=com",
    "user_filter": "",
    "id_attribute": "",
    "username_attribute": "",
    "group_base": "",
    "groups": "",
    "follows_nested": True,
    "id_base": 0,
    "timeout_seconds": 5,
}
