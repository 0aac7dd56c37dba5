"""A middleware that sets the strictest policy there is; Django's own has it from 6.0 on."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse


class StrictPolicy:
    """Everything from the site itself, nothing inline."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        response["Content-Security-Policy"] = "default-src 'self'"
        return response
