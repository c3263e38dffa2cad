"""A database full of the demo's company, for benchmarks of pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from provisioner.demo.company.company import Company

TEMPLATES, TEAMS, PEOPLE = 200, 40, 2000
BUILD_SHARE, DELIVERIES, FINDINGS = 0.06, 2000, 300


def company_of(workspaces: int) -> Company:
    """Return a company with so many workspaces, which can grow; Django is set up."""
    from django.utils import timezone

    from provisioner.demo.company.company import Company
    from provisioner.demo.company.studio import CompanySize

    size = CompanySize(
        people=PEOPLE,
        teams=TEAMS,
        templates=TEMPLATES,
        workspaces=workspaces,
        build_share=BUILD_SHARE,
        deliveries=DELIVERIES,
        findings=FINDINGS,
    )
    company = Company(size, now=timezone.now())
    company.found()
    company.grow(to=workspaces)
    return company
