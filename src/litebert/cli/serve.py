"""`litebert serve FOLDER`: a model as an HTTP service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer


def serve(
    models: list[str] | None = typer.Argument(
        None,
        metavar="FOLDER [NAME=FOLDER ...]",
        help="Exports, model folders, run folders, or names of encoders; the first answers requests "
        "that name no model.",
        show_default=False,
    ),
    host: str | None = typer.Option(
        None, "--host", help="Address to listen on; another than this machine's needs an API key."
    ),
    port: int | None = typer.Option(None, "--port", "-p", help="Port; 0: any that is free. [8080]"),
    config: Path | None = typer.Option(
        None, "--config", "-c", help="TOML file with any of the settings, models included."
    ),
    api_key_file: Path | None = typer.Option(
        None, "--api-key-file", help="File with a key a line; requests then need one of them."
    ),
    insecure: bool | None = typer.Option(
        None, "--insecure", help="Listen on other addresses without a key.", show_default=False
    ),
    precision: str | None = typer.Option(None, "--precision", help="auto, fp32, fp16, int8."),
    threads: int | None = typer.Option(None, "--threads", help="That compute. [all CPUs]"),
    depth: int | None = typer.Option(None, "--depth", help="Depths to run by default. [all]"),
    exit_when: str | None = typer.Option(
        None, "--exit", help="When a text leaves early, e.g. patience=2, confidence=0.9, auto."
    ),
    json_logs: bool | None = typer.Option(
        None, "--json-logs", help="Log lines as JSON.", show_default=False
    ),
    overrides: list[str] | None = typer.Option(
        None, "--set", help="Any setting: name=value. Can be given several times."
    ),
    show_config: bool = typer.Option(
        False, "--show-config", help="Print the settings and where each comes from, and end."
    ),
) -> None:
    """Serve models over HTTP: predictions, vectors, answers, entities, words.

    Routes and shapes are those of text-embeddings-inference and OpenAI where they have them, so
    their clients work. Settings come from options, variables LITEBERT_NAME, a TOML file, and
    defaults, in this order.

    A model folder that is no export is exported first, which needs the extra `export`, and kept in the
    cache folder of the user.

    SIGHUP reloads models and keys; SIGTERM answers what is there and ends with 0.
    """
    import os

    from litebert.cli.output import say, show_json
    from litebert.errors import MissingDependencyError
    from litebert.serve.configuration import resolve

    flags: dict[str, Any] = {
        "host": host,
        "port": port,
        "api_key_file": api_key_file,
        "insecure": insecure,
        "precision": precision,
        "threads": threads,
        "depth": depth,
        "exit_when": exit_when,
        "json_logs": json_logs,
    }

    def prepare(folder: Path) -> Path:
        def on_start(out: Path) -> None:
            say(f"exporting {folder} to {out}; once, it may take a minute")

        try:
            from litebert.recipes.export_cache import cached_export
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                error.name or "torch", extra="export", purpose=f"the folder {folder}"
            ) from error
        return cached_export(folder, on_start)

    resolved = resolve(
        models or [], flags, dict(os.environ), config, overrides or [],
        prepare=(lambda folder: folder) if show_config else prepare,
    )  # fmt: skip
    if show_config:
        show_json(resolved.shown())
        return
    from litebert.serve.server import serve as run

    def on_listening(address: str) -> None:
        names = ", ".join(resolved.settings.models)
        say(f"serving   {names} at {address}")

    run(resolved.settings, on_listening)
