"""Verification of webhooks, as Standard Webhooks describes it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from typing import cast

from .types import FileTaskEvent, OperationEvent


class InvalidSignature(Exception):
    """The request does not come from the server, or is too old."""


def verify_webhook(secrets: str | Iterable[str], headers: Mapping[str, str], body: bytes, tolerance: float = 300) -> OperationEvent | FileTaskEvent:
    """Verifies the signature of a webhook and returns its event.

    secrets are the whsec_… secrets of the webhook, two while one is replaced. headers are those of the
    request, with names in any case. body is the request body as received. Requests whose time differs by
    more than tolerance seconds are refused with InvalidSignature.
    """
    values = {name.lower(): value for name, value in headers.items()}
    id, at = values.get("webhook-id", ""), values.get("webhook-timestamp", "")
    if not id or not at.isascii() or not at.isdigit():
        raise InvalidSignature("the headers of a webhook are missing")
    if abs(time.time() - int(at)) > tolerance:
        raise InvalidSignature("the request is too old, or the clock is wrong")
    signed = f"{id}.{at}.".encode() + body
    signatures = [s[3:] for s in values.get("webhook-signature", "").split() if s.startswith("v1,")]
    for secret in [secrets] if isinstance(secrets, str) else secrets:
        try:
            key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            raise ValueError("a secret of a webhook is whsec_ and Base64") from None
        expected = base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        if any(hmac.compare_digest(expected.encode(), s.encode()) for s in signatures):
            return cast("OperationEvent | FileTaskEvent", json.loads(body))
    raise InvalidSignature("no signature fits the body and the secrets")
