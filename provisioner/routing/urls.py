"""URLs of routing rules and of the load they move."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.routing import views
from provisioner.routing.api import RoutingRuleViewSet, TrafficViewSet
from provisioner.web.navigation import Group, Place, Section, administrators, register

register(
    Place(
        title="Routing",
        section=Section.PERFORCE,
        url_name="routing-rule-list",
        covers=("routing-rule-",),
        rank=55,
        is_for=administrators,
    ),
    Place(
        title="Load moved",
        section=Section.PERFORCE,
        group=Group.LOAD,
        url_name="traffic-list",
        rank=66,
        is_for=administrators,
    ),
)

urlpatterns: list[URLPattern] = [
    path("perforce/rules/", views.routing_rule_list, name="routing-rule-list"),
    path(
        "perforce/rules/<int:pk>/up/",
        views.routing_rule_move_up,
        name="routing-rule-move-up",
    ),
    path(
        "perforce/rules/<int:pk>/remove/",
        views.routing_rule_remove,
        name="routing-rule-remove",
    ),
    path("perforce/traffic/", views.traffic_list, name="traffic-list"),
]

api_routes = [
    Route("v1/routing-rules", RoutingRuleViewSet, "routing-rule"),
    Route("v1/perforce-traffic", TrafficViewSet, "traffic"),
]
