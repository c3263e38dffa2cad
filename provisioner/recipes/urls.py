"""URLs of checkpoints and verified archives."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.recipes import views
from provisioner.recipes.api.views import (
    CheckpointPlanViewSet,
    CheckpointViewSet,
    VerificationPlanViewSet,
    VerificationViewSet,
)
from provisioner.sandboxes.queries import may_have_sandboxes
from provisioner.web.navigation import Group, Place, Section, administrators, register

register(
    Place(
        title="Checkpoints",
        section=Section.PERFORCE,
        group=Group.SANDBOXES,
        url_name="checkpoint-list",
        covers=("checkpoint-",),
        rank=81,
        is_for=administrators,
        also=("backup",),
    ),
    Place(
        title="Verified archives",
        section=Section.PERFORCE,
        group=Group.SANDBOXES,
        url_name="verification-list",
        covers=("verification-",),
        rank=82,
        is_for=may_have_sandboxes,
        also=("verification", "p4 verify", "damaged", "lost"),
    ),
)

urlpatterns: list[URLPattern] = [
    path("checkpoints/", views.checkpoint_list, name="checkpoint-list"),
    path(
        "checkpoints/servers/<int:pk>/",
        views.checkpoint_plan_edit,
        name="checkpoint-plan-edit",
    ),
    path(
        "checkpoints/servers/<int:pk>/make/",
        views.checkpoint_make,
        name="checkpoint-make",
    ),
    path(
        "verifications/servers/<int:pk>/",
        views.verification_plan_edit,
        name="verification-plan-edit",
    ),
    path(
        "verifications/servers/<int:pk>/make/",
        views.verification_make,
        name="verification-make",
    ),
    path("verifications/", views.verification_list, name="verification-list"),
    path(
        "verifications/<int:pk>/",
        views.verification_detail,
        name="verification-detail",
    ),
]

api_routes = [
    Route("v1/checkpoints", CheckpointViewSet, "checkpoint"),
    Route("v1/checkpoint-plans", CheckpointPlanViewSet, "checkpoint-plan"),
    Route("v1/verification-plans", VerificationPlanViewSet, "verification-plan"),
    Route("v1/verifications", VerificationViewSet, "verification"),
]
