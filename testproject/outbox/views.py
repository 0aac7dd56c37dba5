"""The receiver: a webhook that takes a message once, however often it is sent."""

from __future__ import annotations

import json

from django.db import transaction
from django.db.models import F
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from django_jobqueue.payloads import encode_payload

from .models import Delivery


@csrf_exempt  # other machines call it; it has no session to misuse
@require_POST
def webhook(request: HttpRequest, receiver: str) -> JsonResponse:
    """201 for a new message, 200 for one that is here already, 400 for what is no message."""
    key = request.headers.get("Idempotency-Key", "")
    if not 1 <= len(key) <= 200 or not key.isprintable():
        return _problem("An Idempotency-Key of 1 to 200 printable characters is needed.")
    try:
        body = json.loads(request.body)
        encode_payload(body, len(request.body) * 2)  # the same rules: an object, and storable on any database
    except (ValueError, RecursionError) as problem:
        return _problem(f"The body must be a JSON object: {problem}")
    with transaction.atomic():
        # The unique key decides, so two requests at the same time make one delivery as well.
        delivery, is_new = Delivery.objects.get_or_create(
            key=key, defaults={"receiver": receiver, "body": body}
        )
        if not is_new:
            Delivery.objects.filter(pk=delivery.pk).update(repeats=F("repeats") + 1)
    return JsonResponse({"key": key, "new": is_new}, status=201 if is_new else 200)


def _problem(text: str) -> JsonResponse:
    return JsonResponse({"error": text}, status=400)
