from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.checkpoint import convert, unpickle
from litebert.checkpoint.convert import check_torch_version, convert_pickle
from litebert.checkpoint.folder import load_encoder, load_model
from litebert.checkpoint.keys import to_published
from litebert.errors import CheckpointError

Make = Callable[..., Any]


def run_in_this_process(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Stands for the child where only what surrounds it is tested."""
    from safetensors.torch import save_file

    save_file(unpickle.checked_tensors(torch.load(command[-3], weights_only=True)), command[-2])
    return subprocess.CompletedProcess(command, 0)


@pytest.fixture
def source(tmp_path: Path, make_model: Make) -> Path:
    """A folder as old releases wrote it: configuration and pickle, the decoder stored again."""
    folder = tmp_path / "source"
    folder.mkdir()
    model = make_model("mlm")
    tensors = {
        to_published(name.removeprefix("model."), inner=2, head="mlm"): tensor
        for name, tensor in model.state_dict().items()
    }
    tensors["predictions.decoder.weight"] = tensors["albert.embeddings.word_embeddings.weight"]
    tensors["albert.embeddings.position_ids"] = torch.arange(12)[None]
    torch.save(tensors, folder / "pytorch_model.bin")
    config = model.config.to_dict()
    del config["litebert"]
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.slow
def test_a_pickle_becomes_a_model_folder(source: Path, make_model: Make) -> None:
    done = convert_pickle(source / "pytorch_model.bin", source.parent / "out")
    original = make_model("mlm")
    loaded = load_model(source.parent / "out")
    assert all(
        torch.equal(tensor, original.state_dict()[name])
        for name, tensor in loaded.state_dict().items()
    )
    assert (done.head, done.folder) == ("mlm", source.parent / "out")
    assert done.num_parameters == sum(parameter.numel() for parameter in original.parameters())
    assert "can run code" in done.warning
    assert sorted(path.name for path in done.folder.iterdir()) == [
        "config.json",
        "model.safetensors",
    ]
    assert sorted(path.name for path in source.iterdir()) == ["config.json", "pytorch_model.bin"]


@pytest.mark.slow
def test_a_malicious_pickle_does_not_run(source: Path) -> None:
    marker = source / "marker"

    class Payload:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.system, (f"touch {marker}",)

    path = source / "evil.pt"
    torch.save({"weight": Payload()}, path)
    with pytest.raises(CheckpointError, match="wants to run code"):
        convert_pickle(path, source.parent / "out")
    assert not marker.exists()
    assert not (source.parent / "out").exists()


@pytest.mark.slow
def test_a_tensor_larger_than_the_limit_is_refused_by_the_system(source: Path) -> None:
    path = source / "wide.pt"
    torch.save({"weight": torch.zeros(1).expand(1 << 34)}, path)  # 1 KB that unfolds to 64 GB
    with pytest.raises(CheckpointError, match=r"allocate memory|ended with code"):
        convert_pickle(path, source.parent / "out")


def test_weights_of_another_model_are_refused(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", run_in_this_process)
    config = json.loads((source / "config.json").read_text())
    other = source.parent / "other.json"
    other.write_text(json.dumps(config | {"hidden_size": 16}))
    with pytest.raises(CheckpointError, match="another shape"):
        convert_pickle(source / "pytorch_model.bin", source.parent / "out", config=other)
    assert not (source.parent / "out").exists()


def test_the_tokenizer_and_the_head_are_taken_along(
    source: Path, shared: Path, monkeypatch: pytest.MonkeyPatch, make_model: Make
) -> None:
    monkeypatch.setattr(subprocess, "run", run_in_this_process)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh"]
    (source / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    convert_pickle(source / "pytorch_model.bin", source.parent / "out")
    assert (source.parent / "out" / "tokenizer.json").exists()
    (source / "vocab.txt").unlink()
    done = convert_pickle(source / "pytorch_model.bin", source.parent / "named", head="mlm")
    assert done.head == "mlm"
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | {"architectures": ["AlbertModel"]}))
    done = convert_pickle(source / "pytorch_model.bin", source.parent / "encoder")
    assert done.head is None
    assert load_encoder(done.folder).pooler is None


def test_a_folder_stands_for_its_only_pickle(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", run_in_this_process)
    (source / "training_args.bin").write_bytes(b"x")
    done = convert_pickle(source, source.parent / "out")
    assert str(done).startswith(f"a model with the head 'mlm', {done.num_parameters:,} parameters")
    (source / "pytorch_model.bin").rename(source / "weights.pt")
    with pytest.raises(CheckpointError, match=r"several.*training_args\.bin, weights\.pt"):
        convert_pickle(source, source.parent / "out")
    with pytest.raises(CheckpointError, match=r"\(none\)"):
        convert_pickle(source.parent / "out", source.parent / "again")


def test_faults_around_the_child(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = source / "pytorch_model.bin", source.parent / "out"
    for name, message in (("x.onnx", "allowed are"), ("none.bin", "no such file")):
        with pytest.raises(CheckpointError, match=message):
            convert_pickle(source / name, out)
    monkeypatch.setattr(
        subprocess, "run", lambda command, **o: subprocess.CompletedProcess(command, -9)
    )
    with pytest.raises(CheckpointError, match="ended with code -9"):
        convert_pickle(path, out)
    monkeypatch.setattr(
        subprocess, "run", lambda command, **o: subprocess.CompletedProcess(command, 3)
    )
    with pytest.raises(CheckpointError, match="no reason given"):
        convert_pickle(path, out)

    def never_ends(command: list[str], **options: Any) -> None:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    monkeypatch.setattr(subprocess, "run", never_ends)
    with pytest.raises(CheckpointError, match="more than 5 s"):
        convert_pickle(path, out, timeout_seconds=5)
    (source / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json: missing"):
        convert_pickle(path, out)


@pytest.mark.parametrize("version", ["2.9.1", "1.13.0+cu117", "2.5", "unknown"])
def test_an_unsafe_torch_is_refused(
    version: str, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CheckpointError, match=r"needs 2\.10"):
        check_torch_version(version)
    monkeypatch.setattr(convert.torch, "__version__", version)
    with pytest.raises(CheckpointError, match=r"needs 2\.10"):
        convert_pickle(source / "pytorch_model.bin", source.parent / "out")


@pytest.mark.parametrize("version", ["2.10.0", "2.13.0+cpu", "3.0a1"])
def test_a_safe_torch_is_accepted(version: str) -> None:
    check_torch_version(version)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([torch.ones(1)], "holds a list"),
        ({"step": 3}, "is a int"),
        ({3: torch.ones(1)}, "is a Tensor"),
        ({"state_dict": {"a": torch.ones(1)}}, "one level deeper"),
        ({"a": torch.ones(2, 2).to_sparse()}, "sparse"),
        ({"a": torch.ones(1, dtype=torch.complex64)}, "complex"),
        ({str(i): 0 for i in range(3)}, "allowed are 2"),
    ],
)
def test_what_is_no_table_of_tensors(
    content: object, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpickle, "_MAX_TENSORS", 2)
    with pytest.raises(ValueError, match=message):
        unpickle.checked_tensors(content)


def test_shared_memory_is_separated() -> None:
    base = torch.arange(4.0)
    found = unpickle.checked_tensors({"a": base, "b": base, "c": base[::2]})
    assert len({tensor.data_ptr() for tensor in found.values()}) == 3
    assert found["c"].is_contiguous()


def test_the_child_reports_in_one_line(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(unpickle, "limit_process", lambda *limits: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    target = source / "out.safetensors"
    assert unpickle.main(str(source / "pytorch_model.bin"), str(target), "0") == 0
    assert target.exists()
    torch.save({"a": 1}, source / "x.pt")
    assert unpickle.main(str(source / "x.pt"), str(target), "0") == unpickle.FAILURE
    assert capsys.readouterr().out.strip().startswith("entry 'a' is a int")


def test_torchs_advice_to_drop_the_protection_is_not_passed_on() -> None:
    error = pickle.UnpicklingError(
        "Re-running with weights_only=False\n\nTrying to load GLOBAL x.\n"
    )
    assert unpickle.explain(error) == (
        "it is damaged or wants to run code (Trying to load GLOBAL x.)"
    )
    assert "no pickle of tensors" in unpickle.explain(pickle.UnpicklingError("Re-running"))
    assert unpickle.explain(MemoryError()) == "MemoryError"


def test_limits_are_set_where_the_system_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    chosen: dict[int, int] = {}
    monkeypatch.setattr(resource, "setrlimit", lambda kind, pair: chosen.update({kind: pair[0]}))
    unpickle.limit_process(1000, 77)
    assert chosen[resource.RLIMIT_FSIZE] == 77
    assert chosen[resource.RLIMIT_NPROC] == 0
    if Path("/proc/self/statm").exists():
        assert chosen[resource.RLIMIT_AS] > 1000
    monkeypatch.setattr(unpickle, "_STATM", Path("/none"))
    chosen.clear()
    unpickle.limit_process(1000, 77)
    assert resource.RLIMIT_AS not in chosen
    monkeypatch.setitem(sys.modules, "resource", None)
    chosen.clear()
    unpickle.limit_process(1000, 77)
    assert not chosen
