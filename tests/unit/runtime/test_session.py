from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.checkpoint.folder import load_model, save_model
from litebert.data.batch import EncodedExample
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.presets import preset
from litebert.model.span_layout import END_COLUMN, RANK_COLUMN, START_BEAM
from litebert.recipes.predictor import Predictor
from litebert.runtime import Session
from litebert.runtime.exported import ExportedFolder, is_exported
from litebert.text.tokenizer import Tokenizer
from litebert.train.evaluate import predict_outputs

SAME = 1e-5
"""Float32 sums in another order."""
TEXTS = ["", "fine", "the lamp", "the dented lamp is late", "quiet " * 9, "chair " * 60]
MakeExport = Callable[..., Path]


@pytest.fixture(scope="module")
def session(export_dir: Path) -> Session:
    return Session(export_dir, threads=1)


def headed(head: str, folder: Path, model_dir: Path, **changes: Any) -> Path:
    """A folder with a random model of a head, and no task."""
    tokenizer = Tokenizer.from_pretrained(model_dir)
    labels = {"span": 2, "choice": 1}.get(head, 3)
    config = preset("tiny", vocab_size=tokenizer.vocab_size).replace(
        hidden_size=32,
        embedding_size=16,
        num_attention_heads=2,
        intermediate_size=48,
        max_position_embeddings=64,
        num_hidden_layers=3,
        id2label={i: f"L{i}" for i in range(labels)},
        litebert={"head": head} | changes,
    )
    torch.manual_seed(3)
    save_model(AlbertWithHead(config, head), folder, tokenizer)
    return folder


def examples(is_grouped: bool, size: int = 50) -> list[EncodedExample]:
    rng = np.random.default_rng(5)
    made: list[EncodedExample] = []
    for index in range(9):
        parts = rng.integers(4, 30, rng.integers(1, 4)) if is_grouped else rng.integers(4, 60, 1)
        ids = rng.integers(0, size, parts.sum()).astype(np.int32)
        types = np.concatenate([np.arange(n) > n // 3 for n in parts]).astype(np.int32)
        lengths = tuple(parts.tolist()) if len(parts) > 1 else ()
        made.append(EncodedExample(ids, types, None, index, lengths))
    return made


@pytest.mark.parametrize("head", ["sequence", "token", "span", "span_joint", "choice", "embedding"])
def test_outputs_of_every_head_are_those_of_torch(
    head: str, tmp_path: Path, model_dir: Path, make_export: MakeExport
) -> None:
    changes = {"pooling": "mean"} if head == "embedding" else {}
    folder = headed(head, tmp_path / "model", model_dir, **changes)
    items = examples(is_grouped=head in ("choice", "embedding"))
    theirs = predict_outputs(load_model(folder, head), items)
    session = Session(make_export(folder), threads=1)
    assert theirs is not None and session.depths == 3 and session.task is None
    for budget in (1, 100, 4096):
        for ours, wanted in zip(session.outputs(items, batch_tokens=budget), theirs, strict=True):
            assert ours.shape == wanted.shape
            if head == "span_joint":  # ends of starts that no token is
                missing = [k for k in range(START_BEAM) if k not in wanted[:, RANK_COLUMN]]
                ours[:, [END_COLUMN + k for k in missing]] = 0
                wanted[:, [END_COLUMN + k for k in missing]] = 0
            np.testing.assert_allclose(ours, wanted, atol=2 * SAME)


def test_answers_are_those_of_torch(session: Session, model_dir: Path) -> None:
    torch_model = Predictor.load(model_dir)
    for ours, theirs in zip(session.predict(TEXTS), torch_model.predict(TEXTS), strict=True):
        assert ours.label == theirs.label
        assert ours.scores == pytest.approx(theirs.scores, abs=SAME)
    for pooling in ("mean", "cls"):
        ours, theirs = (model.embed(TEXTS, pooling=pooling) for model in (session, torch_model))
        np.testing.assert_allclose(ours, theirs, atol=SAME)
    assert session.predict([]) == [] and session.embed([]).shape == (0, 32)


@settings(max_examples=25)
@given(
    texts=st.lists(
        st.text(st.characters(codec=None), max_size=40) | st.just("the broken lamp is fine"),
        min_size=1,
        max_size=12,
    ),
    batch_tokens=st.integers(1, 300),
)
def test_an_answer_does_not_depend_on_its_company(
    session: Session, texts: list[str], batch_tokens: int
) -> None:
    together = session.predict(texts, batch_tokens=batch_tokens)
    vectors = session.embed(texts, batch_tokens=batch_tokens)
    for answer, vector, text in zip(together, vectors, texts, strict=True):
        assert answer.scores == pytest.approx(session.predict(text)[0].scores, abs=SAME)
        np.testing.assert_allclose(vector, session.embed(text)[0], atol=SAME)


def test_fewer_depths_can_be_run(session: Session, export_dir: Path, model_dir: Path) -> None:
    full = session.predict("the lamp")[0].scores
    one = Session(export_dir, threads=1, depth=1)
    assert one.depth == 1 and one.predict("the lamp")[0].scores != pytest.approx(full, abs=1e-4)
    one.depth = one.depths
    assert one.predict("the lamp")[0].scores == pytest.approx(full, abs=SAME)
    for wrong in (0, one.depths + 1):
        with pytest.raises(SettingsError, match=f"depth is {wrong}; allowed: 1 to"):
            one.depth = wrong
        with pytest.raises(SettingsError, match="allowed: 1 to"):
            Session(export_dir, depth=wrong)
    shallow = Predictor.load(model_dir)
    shallow.model.set_active_depth(1, allow_idle=True)
    one.depth = 1
    assert one.predict("fine")[0].scores == pytest.approx(
        shallow.predict("fine")[0].scores, abs=SAME
    )


def test_words_for_masks(tmp_path: Path, model_dir: Path, make_export: MakeExport) -> None:
    folder = headed("mlm", tmp_path / "model", model_dir)
    session = Session(make_export(folder), threads=1)
    found = session.fill_mask("the [MASK] lamp is [MASK]", top=3)
    assert [len(part) for part in found] == [3, 3]
    tokenizer = Tokenizer.from_pretrained(folder)
    encoding = tokenizer.encode("the [MASK] lamp is [MASK]")
    with torch.inference_mode():
        output = load_model(folder, "mlm").eval()(torch.tensor([encoding.ids]))
    place = encoding.ids.index(tokenizer.mask_id)
    wanted = output.logits[0, place].softmax(-1)
    best = int(wanted.argmax())
    assert found[0][0].piece == tokenizer.token(best)
    assert found[0][0].probability == pytest.approx(float(wanted[best]), abs=SAME)
    assert session.embed("fine").shape == (1, 32)
    with pytest.raises(DataError, match=r"no \[MASK\]"):
        session.fill_mask("the lamp")
    with pytest.raises(SettingsError, match="top is 0"):
        session.fill_mask("[MASK]", top=0)
    with pytest.raises(CheckpointError, match="answers no task"):
        session.outputs(examples(is_grouped=False))


def test_what_a_model_cannot_do_is_said(session: Session, export_dir: Path) -> None:
    with pytest.raises(CheckpointError, match="does not predict words"):
        session.fill_mask("[MASK]")
    with pytest.raises(CheckpointError, match="answers texts, not records"):
        session.answers([object()])
    assert session.answers([]) == []
    long = EncodedExample(np.zeros(65, np.int32), np.zeros(65, np.int32), None, 0)
    with pytest.raises(SettingsError, match="65 tokens, but the model has 64"):
        session.outputs([long])
    two = EncodedExample(np.zeros(6, np.int32), np.zeros(6, np.int32), None, 0, (3, 3))
    with pytest.raises(DataError, match="several sequences has no one vector"):
        session.pooled([two], "mean")
    for precision, message in (("int4", "allowed: auto, int8"), ("int8", "no graph of precision")):
        with pytest.raises(SettingsError, match=message):
            Session(export_dir, precision=precision)


def test_int8_is_taken_where_it_is_there(model_dir: Path, make_export: MakeExport) -> None:
    folder = make_export(model_dir, ("fp32", "int8"))
    exact, small = Session(folder, precision="fp32", threads=1), Session(folder, threads=1)
    assert (exact.precision, small.precision) == ("fp32", "int8")
    one = Session(folder / "onnx" / "litebert.onnx", threads=1)
    assert one.precision == "fp32" and one.folder == folder
    for ours, theirs in zip(small.predict(TEXTS), exact.predict(TEXTS), strict=True):
        assert ours.scores == pytest.approx(theirs.scores, abs=0.1)


@pytest.fixture
def copy(export_dir: Path, tmp_path: Path) -> Path:
    return shutil.copytree(export_dir, tmp_path / "copy")


def changed(folder: Path, **values: object) -> None:
    path = folder / "export.json"
    table = json.loads(path.read_text())
    for name, value in values.items():
        if name == "file":
            next(iter(table["files"].values())).update(value)
        else:
            table[name] = value
    path.write_text(json.dumps(table))


def test_a_changed_graph_is_not_loaded(copy: Path) -> None:
    path = copy / "onnx" / "litebert.onnx"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="has the sha256"):
        Session(copy)
    path.unlink()
    with pytest.raises(CheckpointError, match="missing"):
        Session(copy)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format_version": 2}, "format_version is 2"),
        ({"files": []}, "names no files"),
        ({"files": {"a.onnx": 3}}, "is no object"),
        ({"files": {"../../a.onnx": {"form": "packed", "precision": "fp32", "sha256": "0"}}}, "not in the folder"),
        ({"files": {"/etc/passwd": {"form": "packed", "precision": "fp32", "sha256": "0"}}}, "not in the folder"),
        ({"file": {"precision": "int2"}}, "the precision 'int2'"),
        ({"file": {"sha256": 7}}, "the sha256 7"),
        ({"file": {"form": "plain"}}, "no graph of precision auto"),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_used(copy: Path, values: dict[str, object], message: str) -> None:
    changed(copy, **values)
    with pytest.raises((CheckpointError, SettingsError), match=message):
        Session(copy)


def test_a_link_out_of_the_folder_is_not_followed(copy: Path, tmp_path: Path) -> None:
    path = copy / "onnx" / "litebert.onnx"
    path.rename(tmp_path / "outside.onnx")
    path.symlink_to(tmp_path / "outside.onnx")
    with pytest.raises(CheckpointError, match=r"leads out|outside"):
        Session(copy)


def test_paths_that_are_no_export(copy: Path, tmp_path: Path) -> None:
    assert is_exported(copy) and is_exported(copy / "onnx" / "litebert.onnx")
    assert not is_exported(tmp_path)
    with pytest.raises(CheckpointError, match="no such file or folder"):
        Session(tmp_path / "absent.onnx")
    lone = tmp_path / "lone" / "deep" / "a.onnx"
    lone.parent.mkdir(parents=True)
    lone.write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"no export\.json beside it"):
        Session(lone)
    (copy / "onnx" / "other.onnx").write_bytes(b"x")
    with pytest.raises(CheckpointError, match="is no packed graph that"):
        Session(copy / "onnx" / "other.onnx")
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"vocab_size": -1}))
    with pytest.raises(CheckpointError, match="vocab_size is -1"):
        Session(copy)
    with pytest.raises(CheckpointError, match="vocab_size is True"):
        ExportedFolder(copy, (), {"vocab_size": True}).size("vocab_size")


def rewritten(folder: Path, change: Callable[[onnx.ModelProto], object]) -> None:
    """Change the graph and its digest."""
    import hashlib

    path = folder / "onnx" / "litebert.onnx"
    model = onnx.ModelProto.FromString(path.read_bytes())
    change(model)
    data = model.SerializeToString()
    path.write_bytes(data)
    changed(folder, file={"sha256": hashlib.sha256(data).hexdigest()})


def noted(**values: object) -> Callable[[onnx.ModelProto], object]:
    def change(model: onnx.ModelProto) -> None:
        notes = {p.key: p.value for p in model.metadata_props}
        notes |= {f"litebert.{k}": json.dumps(v) for k, v in values.items()}
        onnx.helper.set_model_props(model, notes)

    return change


def renamed_input(model: onnx.ModelProto) -> None:
    model.graph.input[0].name = "other_ids"
    graphs = [model.graph]
    while graphs:
        for node in graphs.pop().node:
            graphs += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
            for i, name in enumerate(node.input):
                if name == "input_ids":
                    node.input[i] = "other_ids"


def no_hidden(model: onnx.ModelProto) -> None:
    kept = [value for value in model.graph.output if value.name != "last_hidden_state"]
    del model.graph.output[:]
    model.graph.output.extend(kept)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (noted(format_version=9), "format_version is 9"),
        (noted(depth="many"), "note depth is 'many'"),
        (noted(depth=0), "no depth"),
        (noted(head=3), "note head is 3"),
        (noted(head="token"), "needs the head 'sequence', the graph has 'token'"),
        (lambda m: m.metadata_props.__getitem__(0).__setattr__("value", "{"), "not JSON"),
        (renamed_input, "no packed graph"),
        (no_hidden, "no output last_hidden_state"),
        (
            lambda m: m.graph.node[0].input.__setitem__(0, "nothing"),
            "onnxruntime refuses the graph",
        ),
        (lambda m: m.graph.node[0].__setattr__("domain", "evil"), "domain 'evil'"),
    ],
)
def test_graphs_of_another_making(
    copy: Path, change: Callable[[onnx.ModelProto], object], message: str
) -> None:
    rewritten(copy, change)
    with pytest.raises(CheckpointError, match=message):
        Session(copy)


def test_a_task_of_another_model(copy: Path) -> None:
    task = json.loads((copy / "task.json").read_text())
    (copy / "task.json").write_text(json.dumps(task | {"labels": ["no", "yes"]}))
    with pytest.raises(CheckpointError, match="2 outputs, the graph has 3"):
        Session(copy)
    (copy / "task.json").write_text(json.dumps(task | {"max_length": 65}))
    with pytest.raises(CheckpointError, match="max_length 65, but the model has 64"):
        Session(copy)
    (copy / "task.json").unlink()
    bare = Session(copy, threads=1)
    assert bare.embed("fine").shape == (1, 32)
    with pytest.raises(CheckpointError, match=r"no task\.json"):
        bare.predict("fine")


def test_what_fails_while_it_runs(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(text: str) -> None:
        class Broken:
            def run(self, *_: object) -> None:
                raise RuntimeError(text)

        monkeypatch.setattr(session._graph, "_session", Broken())

    failing("node failed\nmore")
    with pytest.raises(CheckpointError, match=r"cannot be run: node failed$"):
        session.predict("fine")
    failing("Failed to allocate memory for requested buffer of size 7")
    with pytest.raises(SettingsError, match="lower batch_tokens"):
        session.predict("fine")
    monkeypatch.undo()
    with pytest.raises(SettingsError, match="depth is 99"):
        session._graph.run(None, [], [], (), depth=99)  # type: ignore[arg-type]
