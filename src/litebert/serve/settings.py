"""Settings of a server: what it serves, where, and how much it takes from whom."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Final, Literal, Self

from pydantic import Field, SecretStr, StringConstraints, model_validator

from litebert.errors import SettingsError
from litebert.serve.engine.process import EngineSettings
from litebert.settings import Settings

__all__ = ["MODEL_NAME", "ServeSettings", "is_loopback", "model_name", "named_models"]

MODEL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
"""Names are keys of a table, never paths."""

Name = Annotated[str, StringConstraints(pattern=rf"^{MODEL_NAME.pattern}$")]


class ServeSettings(Settings):
    """What `litebert serve` can be told; every field is a variable `LITEBERT_NAME` as well."""

    models: dict[Name, Path] = Field(min_length=1, max_length=64)
    """Exported folders by name; the first answers requests that name none."""
    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65535)
    """0: any that is free."""

    precision: Literal["auto", "fp32", "fp16", "int8"] = "auto"
    threads: int | None = Field(default=None, ge=1, le=1024)
    """Threads of each engine; all CPUs that the process may use when not given."""
    spare_engine: bool = False
    """Keep a second engine for each model, which takes over at once when the first one dies."""
    depth: int | None = Field(default=None, ge=1)
    """Depths to run where a request names none."""
    exit_when: str | None = Field(default=None, max_length=64)
    """When a text leaves before them, where a request does not say."""
    pooling: Literal["mean", "cls"] = "mean"
    auto_truncate: bool = True
    """Cut texts that are too long; a request may say otherwise."""

    batch_tokens: int = Field(default=512, ge=1, le=65_536)
    """Tokens of one step; who comes while it runs waits for its end."""
    max_wait_ms: float = Field(default=2.0, ge=0, le=1000)
    """Milliseconds that a request waits for company when nothing else runs."""
    max_request_tokens: int = Field(default=16_384, ge=1)
    """Tokens of one request, all its texts together."""

    max_concurrent_requests: int = Field(default=512, ge=1, le=100_000)
    """Requests that wait or are computed; more get 429."""
    max_queue_seconds: float = Field(default=5.0, gt=0, le=3600)
    """A request that would wait longer, and longer than it is computed itself, gets 429."""
    timeout_seconds: float = Field(default=30.0, gt=0, le=3600)
    """After which a request gets 504; a client may ask for less."""
    max_client_batch_size: int = Field(default=32, ge=1, le=4096)
    """Texts of one request."""
    max_body_bytes: int = Field(default=2_000_000, ge=1000)
    max_reading_bytes: int = Field(default=64_000_000, ge=1000)
    """Of all bodies that are being read; more get 429."""

    max_header_bytes: int = Field(default=16_384, ge=1024, le=1_000_000)
    header_seconds: float = Field(default=10.0, gt=0)
    """From a connection, or the end of the request before, to the end of the header that began."""
    body_bytes_per_second: int = Field(default=1024, ge=0)
    """Slower bodies are given up, after as many seconds as a header may take."""
    keep_alive_seconds: float = Field(default=5.0, gt=0)
    max_connections: int = Field(default=1000, ge=1)
    drain_seconds: float = Field(default=30.0, ge=0)
    """For requests that run when the server is told to end."""

    api_key_file: Path | None = None
    """One key a line; `#` begins a comment. Read again on SIGHUP."""
    api_key: SecretStr | None = None
    """A single key, for variables; a file is better."""
    insecure: bool = False
    """Listen on other addresses than the loopback without a key."""
    cors_allow_origin: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    """Names in `Host` that are answered besides those of this machine, where no key is needed."""
    docs: bool = False
    """Serve `/docs`, which loads scripts from elsewhere."""

    watch: bool = True
    """Reload a model when its folder holds another export."""
    json_logs: bool = False
    access_log: bool = True

    @model_validator(mode="after")
    def _check(self) -> Self:
        has_keys = self.api_key_file is not None or self.api_key is not None
        if not is_loopback(self.host) and not has_keys and not self.insecure:
            raise ValueError(
                f"host: {self.host!r} can be reached from elsewhere, and there is no API key; name a "
                "file of keys (--api-key-file), or say --insecure if something in front checks who asks"
            )
        return self

    def engine(self, name: str) -> EngineSettings:
        """Return how the engine of a model runs."""
        return EngineSettings(
            source=str(self.models[name]),
            precision=self.precision,
            threads=self.threads,
            batch_tokens=self.batch_tokens,
            max_wait=self.max_wait_ms / 1000,
            max_request_tokens=self.max_request_tokens,
        )

    @property
    def default_model(self) -> str:
        """Name of the model that answers requests which name none."""
        return next(iter(self.models))


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; of names only `localhost` counts."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def named_models(sources: list[str], served_name: str | None = None) -> dict[str, Path]:
    """Return name -> folder of `FOLDER` and `NAME=FOLDER`, in order.

    Args:
        sources: what was given.
        served_name: name of the first where it has none.

    Raises:
        SettingsError: a name that is none, or two models of one name.
    """
    found: dict[str, Path] = {}
    for place, source in enumerate(sources):
        name, equals, folder = source.partition("=")
        if not equals or not MODEL_NAME.fullmatch(name):
            if equals and not Path(source).exists():
                raise SettingsError(
                    f"{name!r:.80} is no name for a model; letters, digits, '.', '_' and '-', up to 96"
                )
            folder = source
            name = served_name if place == 0 and served_name else model_name(Path(folder))
        if name in found:
            raise SettingsError(f"two models are named {name!r}; name them: NAME=FOLDER")
        found[name] = Path(folder)
    return found


def model_name(folder: Path) -> str:
    """Return a name made of the last part of a path."""
    text = re.sub(r"[^A-Za-z0-9._-]+", "-", folder.resolve().name).lstrip("._-")[:96]
    return text or "model"
