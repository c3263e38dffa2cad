"""URLs of moves of a template's volume."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.moves import views
from provisioner.moves.api.views import TemplateMoveViewSet

urlpatterns: list[URLPattern] = [
    path("templates/<int:pk>/move/", views.template_move, name="template-move"),
    path(
        "templates/<int:pk>/move/pause/",
        views.template_move_pause,
        name="template-move-pause",
    ),
    path(
        "templates/<int:pk>/move/resume/",
        views.template_move_resume,
        name="template-move-resume",
    ),
    path(
        "templates/<int:pk>/move/stop/",
        views.template_move_stop,
        name="template-move-stop",
    ),
]

api_routes = [Route("v1/templates", TemplateMoveViewSet, "template-move")]
