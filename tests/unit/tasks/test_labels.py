"""An unknown label names the nearest known one."""

from __future__ import annotations

from pathlib import Path

import pytest

from litebert.errors import DataError
from litebert.tasks.labels import find_label


def test_unknown_label_names_the_nearest_and_the_place():
    ids = {"refund": 0, "delivery": 1}
    assert find_label("delivery", ids) == 1
    with pytest.raises(DataError, match=r"reviews\.csv:7: .*did you mean 'refund'\?"):
        find_label("refnud", ids, path=Path("reviews.csv"), line=7)
    with pytest.raises(DataError, match="known: 'refund', 'delivery'"):
        find_label("zzzz", ids)
    with pytest.raises(DataError, match=r"'8', '9', \.\.\."):
        find_label("zzzz", {str(i): i for i in range(12)})
