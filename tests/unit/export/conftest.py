"""Skips without onnx, which is an extra."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")
