"""Asking a lineage server something, or to do something."""

from __future__ import annotations

import os
from typing import Any

from headwater.errors import HeadwaterError

__all__ = ["SERVER", "get", "post"]

SERVER = "http://127.0.0.1:5000"
SECONDS = 600


def get(url: str, path: str, *, hint: str) -> dict[str, Any]:
    """What the server at a URL answers."""
    return _ask("GET", url, path, None, hint)


def post(
    url: str, path: str, *answers: str, body: dict[str, str] | None = None, hint: str
) -> dict[str, Any]:
    """Have the server at a URL do something; what it answers has these keys."""
    answer = _ask("POST", url, path, body, hint)
    try:
        return {name: answer[name] for name in answers}
    except KeyError as error:
        raise HeadwaterError(f"{url} does not answer as Headwater does", hint=hint) from error


def _ask(
    method: str, url: str, path: str, body: dict[str, str] | None, hint: str
) -> dict[str, Any]:
    """One call; the token in HEADWATER_TOKEN says who asks."""
    import httpx

    held = os.environ.get("HEADWATER_TOKEN")
    headers = {"authorization": f"Bearer {held}"} if held else {}
    address = f"{url.rstrip('/')}{path}"
    try:
        response = httpx.request(method, address, json=body, headers=headers, timeout=SECONDS)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise HeadwaterError(f"{url} does not answer: {error}", hint=hint) from error
    try:
        answer = response.json()
        if response.is_error:
            raise HeadwaterError(str(answer["message"]))
    except (ValueError, KeyError, TypeError) as error:
        raise HeadwaterError(
            f"{url} does not answer as Headwater does: HTTP {response.status_code}", hint=hint
        ) from error
    if not isinstance(answer, dict):
        raise HeadwaterError(f"{url} does not answer as Headwater does", hint=hint)
    return answer
