"""The strictest policy there is: by Django's own middleware from 6.0 on, by one of ours before."""

from collections.abc import Callable

import django
from django.http import HttpRequest, HttpResponse
from pytest_django import Settings


def be_strict(settings: Settings) -> None:
    """Every answer forbids all that is inline or from elsewhere."""
    middleware = f"{__name__}.StrictPolicy"
    if django.VERSION >= (6, 0):
        settings.SECURE_CSP = {"default-src": ["'self'"]}
        middleware = "django.middleware.csp.ContentSecurityPolicyMiddleware"
    settings.MIDDLEWARE = [*settings.MIDDLEWARE, middleware]


class StrictPolicy:
    """Everything from the site itself, nothing inline."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response["Content-Security-Policy"] = "default-src 'self'"
        return response
