"""URLs of the documentation."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.help import views
from provisioner.web.navigation import Place, Section, register

register(
    Place(title="Help", section=Section.HELP, url_name="help", covers=("help-",)),
)

urlpatterns: list[URLPattern] = [
    path("help/", views.help_index, name="help"),
    path("help/<name>/", views.help_page, name="help-page"),
]
