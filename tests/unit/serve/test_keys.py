from __future__ import annotations

from pathlib import Path

import pytest

from litebert.errors import SettingsError
from litebert.serve.keys import ApiKeys
from litebert.serve.settings import ServeSettings


def keys(**values: object) -> ApiKeys:
    return ApiKeys(ServeSettings.model_validate({"models": {"m": "folder"}} | values))


def test_keys_of_a_file_and_a_variable_count(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# team\nfirst-secret\n\n  second-secret  \n")
    found = keys(api_key_file=file, api_key="third-secret")
    assert found.are_needed
    names = [
        found.client_of(f"Bearer {key}-secret".encode()) for key in ("first", "second", "third")
    ]
    assert len(set(names)) == 3
    assert all(name and "secret" not in name for name in names)
    file.write_text("another-secret\n")
    found.reload()
    assert found.client_of(b"Bearer first-secret") is None
    assert found.client_of(b"bearer  another-secret") is not None


@pytest.mark.parametrize(
    "header",
    [
        None,
        b"",
        b"Bearer",
        b"Bearer ",
        b"first-secret",
        b"Basic first-secret",
        b"Bearer first-secre",
    ],
)
def test_nobody_else_may_ask(header: bytes | None) -> None:
    assert keys(api_key="first-secret").client_of(header) is None


def test_no_key_means_that_none_is_needed() -> None:
    assert not keys().are_needed


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"# nothing\n", "no API key in it"),
        (b"short\n", "5 characters"),
        (b"\xff\xfe" * 9, "not UTF-8"),
    ],
)
def test_files_that_cannot_be_used(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content)
    with pytest.raises(SettingsError, match=message):
        keys(api_key_file=file)
    with pytest.raises(SettingsError, match="cannot read the API keys"):
        keys(api_key_file=tmp_path / "absent")
