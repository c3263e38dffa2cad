"""URLs of notifications."""

from __future__ import annotations

from django.urls import URLPattern, path

from provisioner.api.routes import Route
from provisioner.notify import views
from provisioner.notify.api.views import (
    DeliveryViewSet,
    NotificationChoiceViewSet,
    SubscriptionViewSet,
    WebhookViewSet,
)
from provisioner.web.navigation import Place, Section, register

register(
    Place(
        title="Notifications",
        section=Section.ACCOUNT,
        url_name="my-notifications",
        rank=35,
    ),
    Place(
        title="Webhooks",
        section=Section.ACCOUNT,
        url_name="webhook-list",
        covers=("webhook-",),
        rank=40,
    ),
)

urlpatterns: list[URLPattern] = [
    path(
        "templates/<int:pk>/mails/",
        views.template_subscribe,
        name="template-subscribe",
    ),
    path("me/notifications/", views.my_notifications, name="my-notifications"),
    path("webhooks/", views.webhook_list, name="webhook-list"),
    path("webhooks/new/", views.webhook_create, name="webhook-create"),
    path("webhooks/<int:pk>/", views.webhook_detail, name="webhook-detail"),
    path("webhooks/<int:pk>/edit/", views.webhook_edit, name="webhook-edit"),
    path("webhooks/<int:pk>/switch/", views.webhook_switch, name="webhook-switch"),
    path("webhooks/<int:pk>/test/", views.webhook_test, name="webhook-test"),
    path("webhooks/<int:pk>/secret/", views.webhook_secret, name="webhook-secret"),
    path("webhooks/<int:pk>/delete/", views.webhook_delete, name="webhook-delete"),
    path(
        "webhooks/<int:pk>/deliveries/<int:delivery_pk>/again/",
        views.webhook_again,
        name="webhook-again",
    ),
]

api_routes = [
    Route("v1/templates", SubscriptionViewSet, "template-mails"),
    Route("v1/notifications", NotificationChoiceViewSet, "notification"),
    Route("v1/webhooks", WebhookViewSet, "webhook"),
    Route(
        "v1/webhooks/<int:webhook_pk>/deliveries", DeliveryViewSet, "webhook-delivery"
    ),
]
