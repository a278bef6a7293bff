"""Variables that set a server: `LITEBERT_NAME` for every setting, and the names that TEI uses."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin

from litebert.errors import SettingsError
from litebert.serve.settings import ServeSettings

__all__ = ["ALIASES", "environment_values"]

PREFIX: Final = "LITEBERT_"
ALIASES: Final = {
    "PORT": "port",
    "HOSTNAME": "host",
    "API_KEY": "api_key",
    "MAX_CONCURRENT_REQUESTS": "max_concurrent_requests",
    "MAX_BATCH_TOKENS": "max_request_tokens",
    "MAX_CLIENT_BATCH_SIZE": "max_client_batch_size",
    "PAYLOAD_LIMIT": "max_body_bytes",
    "AUTO_TRUNCATE": "auto_truncate",
    "POOLING": "pooling",
    "CORS_ALLOW_ORIGIN": "cors_allow_origin",
    "JSON_OUTPUT": "json_logs",
}
"""Names of text-embeddings-inference. `MODEL_ID` and `SERVED_MODEL_NAME` name the first model.

`MAX_BATCH_TOKENS` bounds a request: how much is computed at once is not what its users mean to set.
"""
_NOT_READ: Final = frozenset({"models"})
_TRUE: Final = ("1", "true", "yes", "on")
_FALSE: Final = ("0", "false", "no", "off")


def environment_values(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return settings by name; our names win over aliases, empty variables do not count.

    Raises:
        SettingsError: a value that is none of the kind that the setting takes.
    """
    found: dict[str, Any] = {}
    for variable, name in ALIASES.items():
        text = variables.get(variable, "").strip()
        if text and not (variable == "HOSTNAME" and not _is_address(text)):
            found[name] = _parsed(variable, name, text)
    for name in ServeSettings.model_fields.keys() - _NOT_READ:
        variable = PREFIX + name.upper()
        if text := variables.get(variable, "").strip():
            found[name] = _parsed(variable, name, text)
    return found


def _is_address(text: str) -> bool:
    """Shells and containers set HOSTNAME to the name of the machine, which is no wish."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _parsed(variable: str, name: str, text: str) -> Any:
    annotation = ServeSettings.model_fields[name].annotation
    kinds = {annotation}
    if get_origin(annotation) in (Union, UnionType):
        kinds = {kind for kind in get_args(annotation) if kind is not NoneType}
    try:
        if bool in kinds:
            return _truth(text)
        if int in kinds:
            return int(text)
        if float in kinds:
            return float(text)
        if any(get_origin(kind) is tuple for kind in kinds):
            is_json = text.startswith("[")
            return json.loads(text) if is_json else [part.strip() for part in text.split(",")]
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{variable} is {text!r:.60}; {_allowed(kinds)}") from error
    return text


def _truth(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError(text)


def _allowed(kinds: set[Any]) -> str:
    if bool in kinds:
        return f"allowed: {', '.join(_TRUE + _FALSE)}"
    if int in kinds:
        return "allowed: a whole number"
    return "allowed: a number" if float in kinds else 'allowed: one, two or ["one", "two"]'
