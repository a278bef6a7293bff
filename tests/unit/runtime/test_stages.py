"""Exits without torch: the same answers, depths and tokens as with torch, and rows that are packed anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.checkpoint.folder import load_model, save_model
from litebert.errors import CheckpointError, SettingsError
from litebert.recipes.exit_run import set_exit
from litebert.recipes.loading import limit_depth
from litebert.recipes.predictor import Predictor
from litebert.runtime import Session
from litebert.runtime.packing import pack_rows
from litebert.runtime.stages import ExitStages, moved_rows
from litebert.tasks.base import load_task
from litebert.tasks.exit_file import ExitCurve, ExitPoint

SAME = 1e-5
"""Float32 sums in another order."""
DEPTHS = 4
WORDS = ("fine", "broken", "lovely", "late", "dented", "quiet", "heavy", "green")
TEXTS = [f"the {WORDS[n % 8]} lamp is {' '.join(WORDS[: n % 7])}" for n in range(24)]
RULES = {
    "multiclass": ("confidence=0.6", "patience=1", "entropy=0.8,first=2"),
    "regression": ("patience=1,tolerance=0.5",),
}


@pytest.fixture(
    scope="module", params=[("multiclass", "post"), ("regression", "post"), ("multiclass", "pre")]
)
def folder(
    request: pytest.FixtureRequest, make_model: Any, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    kind, norm = request.param
    source = make_model(kind)
    options: dict[str, Any] = {"exit_heads": True, "norm_position": norm}
    if norm == "pre":
        options["depth_embeddings"] = True
    model = load_model(source)
    from litebert.model.albert import AlbertWithHead

    torch.manual_seed(2)
    config = model.config.replace(num_hidden_layers=DEPTHS, litebert=options)
    made = AlbertWithHead(config).eval()
    with torch.no_grad():
        for name, weight in made.named_parameters():
            if name.startswith(("exits", "heads")):
                weight.normal_(std=2.0)
            elif "depths" in name:
                weight.normal_(std=0.3)
    path = tmp_path_factory.mktemp("stages") / kind
    save_model(made, path, Predictor.load(source).tokenizer, load_task(source).to_json())
    full, chosen = ExitPoint("", DEPTHS, 1, DEPTHS), ExitPoint("patience=1", 3, 1, 2.0)
    curve = ExitCurve("accuracy", 0.0, "t", 9, 1, full, chosen, 0.0, (full, chosen))
    (path / "exits.json").write_text(curve.to_json())
    return path


def test_as_with_torch(folder: Path, make_export: Any) -> None:
    session, predictor = Session(make_export(folder), threads=1), Predictor.load(folder)
    task: Any = predictor.required_task
    logits = session.logits
    from litebert.data.examples import Example

    examples = [Example(text, None, None, Path("t"), n) for n, text in enumerate(TEXTS)]
    for rule in (*RULES[task.kind], "auto"):
        session.depth = None
        session.set_exit(rule)
        run = set_exit(predictor, folder, exit_when=rule)
        assert session.exits is not None
        assert run is not None
        np.testing.assert_allclose(
            logits(examples, batch_tokens=64), predictor.logits(examples), atol=SAME
        )
        assert session.exits.depths.tolist() == run.depths.tolist()
        assert session.exits.tokens.tolist() == run.tokens.tolist()
        assert session.exits.mean_depth == run.mean_depth
        if rule == "auto":
            assert session.depth == 3
            assert not session.exits.tokens[3]
    session.depth = 2
    session.set_exit("patience=3")
    set_exit(predictor, folder, depth=2)
    np.testing.assert_allclose(logits(examples), predictor.logits(examples), atol=SAME)
    session.set_exit(None)
    np.testing.assert_allclose(logits(examples), predictor.logits(examples), atol=SAME)


def test_what_is_refused(folder: Path, make_export: Any, tmp_path: Path) -> None:
    out = make_export(folder)
    session = Session(out, threads=1)
    kind = getattr(session.task, "kind", "")
    if kind == "regression":
        with pytest.raises(SettingsError, match="numbers have no confidence"):
            session.set_exit("confidence=0.9")
    with pytest.raises(SettingsError, match="give one of"):
        session.set_exit("sure")
    (out / "exits.json").unlink()
    with pytest.raises(SettingsError, match="no rule was chosen for it"):
        Session(out, threads=1, exit_when="auto")
    assert isinstance(limit_depth(session, out, depth=3, exit_when="patience=1"), ExitStages)
    assert session.depth == 3
    session._graph.has_stages = False  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(
        CheckpointError, match="cannot stop between depths; export the folder again"
    ):
        session.set_exit("patience=1")


@given(data=st.data())
def test_states_move_with_their_sequences(data: st.DataObject) -> None:
    lengths = data.draw(st.lists(st.integers(1, 9), min_size=1, max_size=8))
    rng = np.random.default_rng(0)
    for rows in pack_rows(lengths, max_tokens=data.draw(st.integers(1, 60))):
        hidden = rng.normal(size=(*rows.shape, 3)).astype(np.float32)
        flat = hidden.reshape(-1, 3)
        places = list(range(len(rows.members)))
        stay = np.array(sorted(data.draw(st.sets(st.sampled_from(places), min_size=1))))
        moved, states = moved_rows(rows, stay, hidden)
        assert moved.members.tolist() == rows.members[stay].tolist()
        assert states.shape == (*moved.shape, 3)
        new = states.reshape(-1, 3)
        for number, place in enumerate(stay.tolist()):
            length = int(rows.lengths[place])
            assert moved.lengths[number] == length
            a, b = rows.first_positions[place], moved.first_positions[number]
            np.testing.assert_array_equal(new[b : b + length], flat[a : a + length])
        assert len(set(moved.slots.tolist())) == int(moved.lengths.sum())
