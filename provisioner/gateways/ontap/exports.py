"""Export policies of the SVM."""

from __future__ import annotations

from provisioner.gateways.ontap import bodies, records
from provisioner.gateways.ontap.names import exact_name
from provisioner.gateways.ontap.types import ExportPolicy, ExportRule
from provisioner.gateways.ontap.verbs import Verbs

_EXPORT_POLICIES = "/protocols/nfs/export-policies"


class ExportPolicies(Verbs):
    """Export policies of the SVM."""

    def find_export_policy(self, name: str) -> ExportPolicy | None:
        """Return the SVM's export policy with its rules, or None.

        Source: GET /api/protocols/nfs/export-policies.
        """
        found = self._find(
            _EXPORT_POLICIES,
            name=name,
            fields=records.EXPORT_POLICY_FIELDS,
            in_svm=True,
        )
        return records.export_policy(found) if found else None

    def create_export_policy(
        self, name: str, *, rules: tuple[ExportRule, ...]
    ) -> ExportPolicy:
        """Create an export policy.

        Raises: AlreadyExists, Refused (name, client match).
        Source: POST /api/protocols/nfs/export-policies.
        """
        self._ontap.write_at_once(
            "POST",
            _EXPORT_POLICIES,
            body={
                "name": exact_name(name),
                "svm": {"name": self._svm},
                "rules": [bodies.export_rule(rule) for rule in rules],
            },
        )
        return self._wait_for(lambda: self.find_export_policy(name))

    def set_export_rules(
        self, policy_id: int, *, rules: tuple[ExportRule, ...]
    ) -> None:
        """Replace all rules of a policy, in this order. Safe to repeat.

        The first rule that matches a host decides. Without rules no host has access.

        Raises: NotFound (policy), Refused (client match, duplicate).
        Source: PATCH /api/protocols/nfs/export-policies/{id}.
        """
        self._ontap.write_at_once(
            "PATCH",
            f"{_EXPORT_POLICIES}/{policy_id}",
            body={"rules": [bodies.export_rule(rule) for rule in rules]},
        )
