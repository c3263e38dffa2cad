"""Addresses of notify."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.notify import views as notify_views
from provisioner.notify.api import DeliveryViewSet, SubscriptionViewSet, WebhookViewSet

urlpatterns: list[URLPattern] = [
    path(
        "templates/<int:pk>/mails/",
        notify_views.template_subscribe,
        name="template-subscribe",
    ),
    path("webhooks/", notify_views.webhook_list, name="webhook-list"),
    path("webhooks/new/", notify_views.webhook_create, name="webhook-create"),
    path("webhooks/<int:pk>/", notify_views.webhook_detail, name="webhook-detail"),
    path("webhooks/<int:pk>/edit/", notify_views.webhook_edit, name="webhook-edit"),
    path(
        "webhooks/<int:pk>/switch/", notify_views.webhook_switch, name="webhook-switch"
    ),
    path("webhooks/<int:pk>/test/", notify_views.webhook_test, name="webhook-test"),
    path(
        "webhooks/<int:pk>/secret/", notify_views.webhook_secret, name="webhook-secret"
    ),
    path(
        "webhooks/<int:pk>/delete/", notify_views.webhook_delete, name="webhook-delete"
    ),
    path(
        "webhooks/<int:pk>/deliveries/<int:delivery_pk>/again/",
        notify_views.webhook_again,
        name="webhook-again",
    ),
]

api_routes = [
    Route("v1/templates", SubscriptionViewSet, "template-mails"),
    Route("v1/webhooks", WebhookViewSet, "webhook"),
    Route(
        "v1/webhooks/<int:webhook_pk>/deliveries", DeliveryViewSet, "webhook-delivery"
    ),
]
