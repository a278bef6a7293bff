"""Packed and plain graphs against torch: every head, option and plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.export.onnx.checks import check_products, check_stored
from litebert.export.onnx.exporter import graph_runner
from litebert.export.onnx.floats import FloatPrecision
from litebert.export.onnx.packed import packed_model
from litebert.export.onnx.plain import plain_model
from litebert.export.onnx.source import Source, make_precision
from litebert.export.onnx.writer import all_nodes
from litebert.export.probes import Probe
from litebert.export.verify import Difference, Referee, compare_one, reference
from litebert.model.head_kinds import HEADS
from litebert.runtime.onnx_file import parse_onnx

from .tiny import packed_difference, packed_runner, tiny

FP32 = 2e-5
"""Numbers are up to 5; two implementations of float32 differ by some units of the last place."""
INT8 = 0.97
"""Cosine. Models this narrow are harder to round than real ones, which reach 0.997."""

OPTIONS: dict[str, dict[str, Any]] = {
    "gelu": {"hidden_act": "gelu"},
    "relu": {"hidden_act": "relu"},
    "no projection": {"embedding_size": 16},
    "one segment": {"type_vocab_size": 1},
    "rotary": {"litebert": {"positions": "rotary"}},
    "disentangled v2": {"litebert": {"positions": "disentangled", "relative_distance": 8}},
    "disentangled v1, buckets": {
        "litebert": {
            "positions": "absolute+disentangled",
            "relative_form": "v1",
            "relative_distance": 8,
            "relative_buckets": 4,
        }
    },
    "disentangled c2p": {
        "litebert": {
            "positions": "disentangled", "relative_distance": 8, "relative_terms": "c2p"
        }
    },
    "disentangled p2c, grouped": {
        "litebert": {
            "positions": "disentangled",
            "relative_form": "v1",
            "relative_distance": 8,
            "relative_terms": "p2c",
            "num_key_value_heads": 2,
        }
    },
    "geglu": {"litebert": {"ffn": "geglu"}},
    "pre-norm": {"litebert": {"norm_position": "pre"}},
    "depth embeddings": {"litebert": {"depth_embeddings": True}},
    "lora": {"litebert": {"lora_rank": 2, "lora_alpha": 4.0}},
    "lora on some": {
        "litebert": {"lora_rank": 2, "ffn": "geglu", "lora_on": ("gate", "query", "down")}
    },
    "depth norms": {"litebert": {"depth_norms": True}},
    "bottlenecks": {"litebert": {"adapter_size": 3}},
    "local": {"litebert": {"local_window": 4}},
    "always local": {"litebert": {"local_window": 2, "global_every": 0}},
    "multi-query": {"litebert": {"num_key_value_heads": 1}},
    "heads removed": {"num_attention_heads": 2, "litebert": {"head_size": 4}},
    "heads removed, rotary": {
        "num_attention_heads": 2, "litebert": {"head_size": 4, "positions": "rotary"}
    },
    "heads removed, lora": {
        "num_attention_heads": 2,
        "litebert": {"head_size": 4, "lora_rank": 2, "lora_on": ("query", "output")},
    },
    "heads removed, disentangled": {
        "num_attention_heads": 2,
        "litebert": {"head_size": 4, "positions": "disentangled", "relative_distance": 8},
    },
    "groups": {"num_hidden_groups": 2},
    "not shared": {"litebert": {"sharing": "none"}},
    "attention shared": {"litebert": {"sharing": "attention_only"}},
    "ffn shared": {"litebert": {"sharing": "ffn_only"}},
    "sandwich": {"num_hidden_layers": 5, "litebert": {"sharing": "sandwich"}},
    "cycle back": {
        "num_hidden_layers": 6, "num_hidden_groups": 3, "litebert": {"sharing": "cycle_rev"}
    },
    "inner": {
        "inner_group_num": 2,
        "num_hidden_groups": 2,
        "litebert": {
            "sharing": "cycle", "lora_rank": 2, "depth_norms": True, "depth_embeddings": True
        },
    },
    "everything": {
        "num_hidden_groups": 2,
        "litebert": {
            "sharing": "cycle",
            "positions": "absolute+rotary",
            "ffn": "geglu",
            "norm_position": "pre",
            "depth_embeddings": True,
            "lora_rank": 2,
            "depth_norms": True,
            "adapter_size": 3,
            "local_window": 6,
            "num_key_value_heads": 2,
        },
    },
}  # fmt: skip


@pytest.mark.parametrize("head", [None, *HEADS])
def test_every_head_gives_what_torch_gives(head: str | None) -> None:
    model = tiny(head)
    source, referee = Source.of(model), Referee(model)
    for write, compare in ((packed_model, referee.packed), (plain_model, referee.plain)):
        proto = write(source.parts, FloatPrecision())
        check_stored(proto, source.parts, "fp32")
        data = proto.SerializeToString()
        parse_onnx(data)  # the reader of the runtime takes it
        assert compare(graph_runner(data)).max_difference < FP32


@pytest.mark.parametrize("head", ["sequence", "token", "pretraining", "span_joint"])
def test_int8_graphs_of_heads_agree_and_multiply_integers(head: str) -> None:
    model = tiny(head)
    source, referee = Source.of(model), Referee(model)
    precision = make_precision("int8", source)
    for write, compare in ((packed_model, referee.packed), (plain_model, referee.plain)):
        proto = write(source.parts, precision)
        check_stored(proto, source.parts, "int8")
        check_products(proto)
        assert compare(graph_runner(proto.SerializeToString())).agreement > INT8


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_and_plan_gives_what_torch_gives(name: str) -> None:
    model = tiny(**OPTIONS[name])
    source, referee = Source.of(model), Referee(model)
    packed = packed_model(source.parts, FloatPrecision())
    check_stored(packed, source.parts, "fp32")
    found = referee.packed(graph_runner(packed.SerializeToString()))
    assert found.max_difference < FP32
    plain = plain_model(source.parts, FloatPrecision()).SerializeToString()
    assert referee.plain(graph_runner(plain)).max_difference < FP32


@pytest.mark.parametrize("name", ["everything", "disentangled v2", "not shared", "lora"])
def test_int8_graphs_of_options_multiply_integers(name: str) -> None:
    model = tiny(**OPTIONS[name])
    source = Source.of(model)
    proto = packed_model(source.parts, make_precision("int8", source))
    check_products(proto)
    check_stored(proto, source.parts, "int8")
    found = Referee(model).packed(graph_runner(proto.SerializeToString()))
    assert found.agreement > INT8


def test_mean_pooling_and_a_folder_without_pooler() -> None:
    model = tiny("embedding", litebert={"pooling": "mean"})
    model.model.pooler = None
    assert packed_difference(model).max_difference < FP32


def test_half_precision_is_close_and_half_as_large() -> None:
    model = tiny()
    source = Source.of(model)
    sizes = {
        name: packed_model(source.parts, FloatPrecision(name)).ByteSize()
        for name in ("fp32", "fp16")
    }
    found = packed_difference(model, "fp16")
    assert found.max_difference < 1e-2 and sizes["fp16"] < sizes["fp32"]


ROWS = st.lists(
    st.lists(st.one_of(st.integers(1, 9), st.just(0)), min_size=1, max_size=4),
    min_size=1,
    max_size=3,
)
"""Rows of lengths; 0 is a gap of two slots."""


@settings(max_examples=25)
@given(rows=ROWS, depth=st.integers(1, 4), seed=st.integers(0, 99))
def test_any_packing_gives_each_sequence_what_it_gets_alone(
    rows: list[list[int]], depth: int, seed: int
) -> None:
    if not any(length for row in rows for length in row):
        rows = [[3], *rows]
    generator = np.random.default_rng(seed)
    sequences: list[Any] = []
    layout: list[tuple[tuple[int | None, int], ...]] = []
    for row in rows:
        spots: list[tuple[int | None, int]] = []
        for length in row:
            spots.append((len(sequences), length) if length else (None, 2))
            if length:
                sequences.append(generator.integers(0, 60, length))
        layout.append(tuple(spots))
    types = tuple(np.arange(len(ids)) % 2 for ids in sequences)
    width = max(sum(size for _, size in row) for row in layout)
    probe = Probe(tuple(sequences), types, tuple(layout), width, depth)
    model, run = _shared()
    difference = Difference()
    compare_one(model, run, probe, difference, reference(model, probe))
    assert difference.max_difference < FP32


_KEPT: list[Any] = []


def _shared() -> Any:
    if not _KEPT:
        model = tiny("sequence")
        _KEPT.append((model, packed_runner(model)))
    return _KEPT[0]


def test_a_shared_block_is_written_once_whatever_the_depth() -> None:
    counts: list[int] = []
    for depths in (2, 12):
        source = Source.of(tiny(num_hidden_layers=depths))
        proto = packed_model(source.parts, FloatPrecision())
        names = [tensor.name for tensor in proto.graph.initializer]
        assert len(set(names)) == len(names)
        assert sum(name.endswith("up.weight") for name in names) == 1
        counts.append(len(all_nodes(proto.graph.node)))
    assert counts[0] == counts[1] == GOLDEN_NODES


GOLDEN_NODES = 56
"""Operators of an encoder with pooler: what makes this grow makes every pass slower."""


def test_each_distinct_sub_layer_is_written_once() -> None:
    source = Source.of(tiny(litebert={"sharing": "attention_only"}))
    proto = packed_model(source.parts, FloatPrecision())
    kinds = [node.op_type for node in all_nodes(proto.graph.node)]
    assert kinds.count("Softmax") == 1 and kinds.count("Gelu") == 4 and kinds.count("Loop") == 1


def test_a_pass_in_stages_is_the_whole_pass() -> None:
    model = tiny("sequence", litebert={"exit_heads": True, "norm_position": "pre"})
    run = packed_runner(model)
    ids = np.arange(1, 7)[None]
    zeros = np.zeros_like(ids)
    inputs: dict[str, Any] = {
        "input_ids": ids,
        "token_type_ids": zeros,
        "position_ids": np.arange(6)[None],
        "sequence_ids": zeros + 1,
        "first_positions": np.array([0]),
    }
    hidden = None
    for depth in range(1, 5):
        staged = run(
            {**inputs, "depth": np.array(depth)}
            if hidden is None
            else {
                **inputs,
                "depth": np.array(depth),
                "start_depth": np.array(depth - 1),
                "hidden_in": hidden,
            }
        )
        hidden = staged["hidden_out"]
        model.set_active_depth(depth, allow_idle=True)
        with torch.no_grad():
            wanted = model(torch.from_numpy(ids)).logits
        assert int(staged["exit_depth"]) == depth
        np.testing.assert_allclose(staged["logits"], wanted.numpy(), atol=FP32)


@pytest.mark.parametrize("kind", ["single_label_classification", "multi_label_classification"])
def test_the_loop_ends_at_the_first_depth_that_is_sure(kind: str) -> None:
    model = tiny("sequence", problem_type=kind, litebert={"exit_heads": True})
    run = packed_runner(model)
    ids = np.arange(1, 7)[None]
    inputs: dict[str, Any] = {
        "input_ids": ids,
        "token_type_ids": ids * 0,
        "position_ids": np.arange(6)[None],
        "sequence_ids": ids * 0 + 1,
        "first_positions": np.array([0]),
    }
    sure: list[float] = []
    for depth in range(1, 5):
        logits = run({**inputs, "depth": np.array(depth)})["logits"][0] / 0.5
        if kind == "multi_label_classification":
            yes = 1 / (1 + np.exp(-logits))
            sure.append(float(np.maximum(yes, 1 - yes).min()))
        else:
            sure.append(float(np.exp(logits).max() / np.exp(logits).sum()))
    for threshold in (0.5, float(np.median(sure)) - 1e-6, max(sure) - 1e-6, 1.0):
        asked = {
            "exit_threshold": np.array(threshold, np.float32),
            "exit_temperature": np.array(0.5, np.float32),
        }
        found = run({**inputs, **asked})
        reached = [depth for depth in range(1, 5) if sure[depth - 1] >= threshold]
        assert int(found["exit_depth"]) == (reached[0] if reached else 4)


def test_depth_is_kept_within_the_model() -> None:
    _, run = _shared()
    ids = np.arange(1, 5)[None]
    inputs: dict[str, Any] = {
        "input_ids": ids,
        "token_type_ids": ids * 0,
        "position_ids": np.arange(4)[None],
        "sequence_ids": ids * 0 + 1,
        "first_positions": np.array([0]),
    }
    whole = run(inputs)["last_hidden_state"]
    beyond = run({**inputs, "depth": np.array(99)})["last_hidden_state"]
    assert np.array_equal(whole, beyond)
