from __future__ import annotations

from pathlib import Path

import pytest

from litebert.errors import (
    CheckpointError,
    DataError,
    DegradedError,
    ExportError,
    LitebertError,
    MissingDependencyError,
    SettingsError,
    TrainingDiverged,
)


def test_located_errors_name_file_and_line() -> None:
    error = DataError("label is empty", path=Path("a.csv"), line=7, column="label")
    assert str(error) == "a.csv:7: column 'label': label is empty"
    assert (error.path, error.line, error.column) == (Path("a.csv"), 7, "label")
    assert str(SettingsError("wrong", line=3)) == "line 3: wrong"
    assert str(CheckpointError("no weights", path=Path("m"))) == "m: no weights"
    assert ExportError("differs", max_difference=0.5).max_difference == 0.5


def test_training_diverged_shows_its_evidence() -> None:
    error = TrainingDiverged("loss is not finite", step=12, evidence={"loss": "nan"})
    assert str(error) == "step 12: loss is not finite (loss=nan)"
    assert error.step == 12


def test_missing_dependency_says_how_to_install() -> None:
    error = MissingDependencyError("torch", extra="train", purpose="training")
    assert 'pip install "litebert[train]"' in str(error)


@pytest.mark.parametrize(
    ("kind", "builtin", "code"),
    [
        (SettingsError, ValueError, 2),
        (DataError, ValueError, 65),
        (CheckpointError, RuntimeError, 65),
        (ExportError, RuntimeError, 1),
        (DegradedError, RuntimeError, 1),
        (TrainingDiverged, RuntimeError, 70),
        (MissingDependencyError, ImportError, 2),
    ],
)
def test_every_error_is_ours_and_a_builtin_with_its_exit_code(
    kind: type[LitebertError], builtin: type[Exception], code: int
) -> None:
    assert issubclass(kind, LitebertError)
    assert issubclass(kind, builtin)
    assert kind.exit_code == code
