"""The export policies of a site: which hosts may mount what."""

from __future__ import annotations

from collections.abc import Iterable

from provisioner.gateways.errors import AlreadyExists
from provisioner.gateways.ontap.gateway import OntapGateway
from provisioner.gateways.ontap.types import ExportRule
from provisioner.sites.models import Site


def policies_of(site: Site) -> dict[str, tuple[ExportRule, ...]]:
    """Return the rules of each export policy of a site, by name."""
    rules = export_rules_of(site)
    of_workers = rules[:1]
    return {
        site.export_policy: rules,
        site.frozen_policy: of_workers,
        site.templates_policy: of_workers,
    }


def export_rules_of(site: Site) -> tuple[ExportRule, ...]:
    """Return the rules, workers first: ONTAP applies the first that matches."""
    if not site.worker_clients:
        return (ExportRule(clients=tuple(site.export_clients), superuser=("sys",)),)
    workers = ExportRule(clients=tuple(site.worker_clients), superuser=("sys",))
    # ONTAP refuses one client match in two rules.
    others = tuple(c for c in site.export_clients if c not in site.worker_clients)
    if not others:
        return (workers,)
    return (workers, ExportRule(clients=others, superuser=("none",)))


def ensure_policy_rules(
    ontap: OntapGateway, name: str, *, rules: tuple[ExportRule, ...]
) -> None:
    """Ensure that our export policy has exactly these rules.

    Reads once, and writes only the differences.
    """
    policy = ontap.find_export_policy(name)
    if policy is None:
        try:
            policy = ontap.create_export_policy(name, rules=rules)
        except AlreadyExists:
            policy = ontap.find_export_policy(name)
            if policy is None:
                raise
    if rules_differ(policy.rules, rules):
        ontap.set_export_rules(policy.id, rules=rules)


def rules_differ(some: Iterable[ExportRule], others: Iterable[ExportRule]) -> bool:
    """Return whether two lists of rules grant different access."""
    return [_meaning(rule) for rule in some] != [_meaning(rule) for rule in others]


def _meaning(rule: ExportRule) -> tuple[frozenset[str] | bool, ...]:
    """Return a rule without the order in which ONTAP lists its parts."""
    return (
        frozenset(rule.clients),
        frozenset(rule.ro_rule),
        frozenset(rule.rw_rule),
        frozenset(rule.superuser),
        frozenset(rule.protocols),
        rule.allow_suid,
        rule.allow_device_creation,
    )
