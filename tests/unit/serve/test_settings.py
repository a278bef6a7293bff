from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from litebert.errors import CheckpointError, SettingsError
from litebert.serve.configuration import resolve
from litebert.serve.environment import ALIASES, environment_values
from litebert.serve.settings import ServeSettings, is_loopback, model_name, named_models


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "reviews onnx"
    folder.mkdir()
    (folder / "export.json").write_text("{}")
    return folder


def settings(**values: Any) -> ServeSettings:
    return ServeSettings.model_validate({"models": {"m": "folder"}} | values)


def test_options_win_over_variables_over_the_file_over_defaults(
    export: Path, tmp_path: Path
) -> None:
    config = tmp_path / "serve.toml"
    config.write_text(
        'port = 1\nthreads = 1\nprecision = "fp32"\n[models]\nnamed = "reviews onnx"\n'
    )
    found = resolve(
        [], {"port": 3, "threads": None}, {"LITEBERT_PORT": "2", "LITEBERT_THREADS": "2"}, config
    )
    assert (found.settings.port, found.settings.threads, found.settings.precision) == (3, 2, "fp32")
    assert found.settings.models == {"named": tmp_path / "reviews onnx"}
    shown = found.shown()
    assert shown["port"] == {"value": 3, "from": "option"}
    assert shown["threads"]["from"] == "variable"
    assert shown["precision"]["from"] == "file"
    assert shown["host"] == {"value": "127.0.0.1", "from": "default"}
    assert resolve([str(export)], {}, {}, config, ["port=9"]).settings.port == 9


def test_names_of_tei_are_understood_and_ours_win(export: Path) -> None:
    variables = {
        "MODEL_ID": str(export), "SERVED_MODEL_NAME": "reviews", "PORT": "99", "HOSTNAME": "127.0.0.2",
        "MAX_CLIENT_BATCH_SIZE": "7", "AUTO_TRUNCATE": "false", "JSON_OUTPUT": "true", "POOLING": "cls",
        "LITEBERT_PORT": "98", "CORS_ALLOW_ORIGIN": "http://a, http://b", "PAYLOAD_LIMIT": "5000",
        "MAX_CONCURRENT_REQUESTS": "9", "MAX_BATCH_TOKENS": "99", "API_KEY": "long-enough-key",
    }  # fmt: skip
    found = resolve([], {}, variables, None).settings
    assert list(found.models) == ["reviews"]
    assert (found.port, found.host, found.max_client_batch_size) == (98, "127.0.0.2", 7)
    assert (found.auto_truncate, found.json_logs, found.pooling) == (False, True, "cls")
    assert found.cors_allow_origin == ("http://a", "http://b")
    assert (found.max_body_bytes, found.max_concurrent_requests) == (5000, 9)
    assert found.max_request_tokens == 99
    assert "long-enough-key" not in str(resolve([], {}, variables, None).shown())
    assert set(ALIASES.values()) <= set(ServeSettings.model_fields)


def test_the_name_of_a_machine_is_no_wish() -> None:
    assert environment_values({"HOSTNAME": "build-7", "PORT": ""}) == {}


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"PORT": "eighty"}, "PORT is 'eighty'; allowed: a whole number"),
        ({"LITEBERT_MAX_WAIT_MS": "soon"}, "LITEBERT_MAX_WAIT_MS is 'soon'; allowed: a number"),
        ({"AUTO_TRUNCATE": "perhaps"}, "AUTO_TRUNCATE is 'perhaps'; allowed: 1, true"),
        ({"CORS_ALLOW_ORIGIN": "[https://a"}, "CORS_ALLOW_ORIGIN is .*; allowed: one, two or"),
        ({"LITEBERT_ALLOWED_HOSTS": "[" * 9999}, "LITEBERT_ALLOWED_HOSTS is .*; allowed: one"),
    ],
)
def test_variables_that_are_none(variables: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        environment_values(variables)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org"])  # noqa: S104
def test_others_get_in_with_a_key_only(host: str) -> None:
    assert not is_loopback(host)
    with pytest.raises(ValueError, match="can be reached from elsewhere"):
        settings(host=host)
    assert settings(host=host, api_key="a-long-key").host == host
    assert settings(host=host, insecure=True).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_none(host: str) -> None:
    assert settings(host=host).host == host


def test_models_have_names_not_paths(export: Path) -> None:
    assert named_models(["a/b", "c=d/e"]) == {"b": Path("a/b"), "c": Path("d/e")}
    assert named_models(["a"], "first") == {"first": Path("a")}
    assert model_name(export) == "reviews-onnx"
    assert model_name(Path("/")) == "model"
    with pytest.raises(SettingsError, match="two models are named 'a'"):
        named_models(["a", "a=b"])
    with pytest.raises(SettingsError, match="no name for a model"):
        named_models(["../a=b"])
    with pytest.raises(ValueError, match="should match pattern"):
        settings(models={"../up": "folder"})


def test_what_cannot_be_served_is_said_before_anything_listens(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no model is named"):
        resolve([], {}, {}, None)
    with pytest.raises(CheckpointError, match="there is no export"):
        resolve([str(tmp_path)], {}, {}, None)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(CheckpointError, match="export it first"):
        resolve([str(tmp_path)], {}, {}, None)
    (tmp_path / "export.json").write_text("{}")
    with pytest.raises(SettingsError, match="did you mean 'port'"):
        resolve([str(tmp_path)], {}, {}, None, ["prot=1"])
