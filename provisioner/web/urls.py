"""URLs of saved views and columns of lists."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.web import views

urlpatterns: list[URLPattern] = [
    path("me/lists/columns/", views.my_list_columns, name="my-list-columns"),
    path("me/views/save/", views.my_view_save, name="my-view-save"),
    path("me/views/<int:pk>/delete/", views.my_view_delete, name="my-view-delete"),
]
