from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError


def test_a_ramp_needs_the_length_of_the_run(wanted: Any) -> None:
    ramp = {"batch_ramp": {"start_batch_size": 2}}
    assert wanted(train=ramp).train.batch_ramp is not None
    with pytest.raises(ValidationError, match=r"batch_ramp needs train.max_steps"):
        wanted(train=ramp | {"max_steps": None})


def test_patience_has_no_use(wanted: Any) -> None:
    with pytest.raises(ValidationError, match="patience has no use in pretraining"):
        wanted(train={"patience": 3})


def test_defaults_are_those_of_pretraining(wanted: Any) -> None:
    train = wanted().train
    assert not train.load_best
    assert train.learning_rate == 1e-3
