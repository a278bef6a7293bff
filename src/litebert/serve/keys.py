"""Who may ask: keys from a file or a variable, compared in constant time, never logged."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import TYPE_CHECKING, Final

from litebert.errors import SettingsError
from litebert.small_files import read_small

if TYPE_CHECKING:
    from litebert.serve.settings import ServeSettings

__all__ = ["ApiKeys"]

MAX_FILE_BYTES: Final = 1_000_000
LEAST_LENGTH: Final = 8


class ApiKeys:
    """The keys of a server; only their digests are kept."""

    def __init__(self, settings: ServeSettings) -> None:
        """Read them.

        Raises:
            SettingsError: the file cannot be read, holds no key, or one that is too short.
        """
        self._settings = settings
        self._digests = self._read()

    @property
    def are_needed(self) -> bool:
        """Whether a request needs a key."""
        return bool(self._digests)

    def reload(self) -> None:
        """Read them again.

        Raises:
            SettingsError: as at the start; the old keys stay.
        """
        self._digests = self._read()

    def client_of(self, authorization: bytes | None) -> str | None:
        """Return a name for who sent this header, or None for nobody who may ask.

        All keys are compared, whichever fits, so that the time tells nothing.
        """
        scheme, _, key = (authorization or b"").partition(b" ")
        given = hashlib.sha256(key.strip()).digest()
        found = None
        for digest in self._digests:
            if hmac.compare_digest(digest, given):
                found = f"key-{digest.hex()[:8]}"
        return found if scheme.lower() == b"bearer" else None

    def _read(self) -> tuple[bytes, ...]:
        keys: list[str] = []
        single, path = self._settings.api_key, self._settings.api_key_file
        if single is not None:
            keys.append(single.get_secret_value())
        if path is not None:
            keys += _file_keys(path)
        for key in keys:
            if len(key) < LEAST_LENGTH:
                raise SettingsError(
                    f"an API key has {len(key)} characters; use {LEAST_LENGTH} or more, made by chance"
                )
        return tuple(hashlib.sha256(key.encode("utf-8")).digest() for key in dict.fromkeys(keys))


def _file_keys(path: Path) -> list[str]:
    try:
        text = read_small(path, MAX_FILE_BYTES).decode("utf-8")
    except OSError as error:
        raise SettingsError(f"cannot read the API keys: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise SettingsError("the API keys are not UTF-8", path=path) from error
    keys = [line.strip() for line in text.splitlines()]
    keys = [key for key in keys if key and not key.startswith("#")]
    if not keys:
        raise SettingsError("there is no API key in it; write one a line", path=path)
    return keys
