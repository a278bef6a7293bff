from __future__ import annotations

import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from litebert.errors import SettingsError
from litebert.recipes.bench import candidates, report, run
from litebert.recipes.bench.candidates import Candidate, Missing, find_candidates
from litebert.recipes.bench.engines import ENGINES, Engine, padded_batches
from litebert.recipes.bench.report import BenchReport, bench
from litebert.recipes.bench.run import BenchJob, Measured, Worker, measure, typical_lengths
from litebert.recipes.bench.worker import memory, serve


def test_rectangles_hold_every_sequence_once() -> None:
    sequences = [np.arange(1, n + 1) for n in (3, 9, 1, 4, 4)]
    for is_sorted in (False, True):
        batches = list(padded_batches(sequences, 2, is_sorted=is_sorted))
        rows = [r[m == 1].tolist() for ids, mask in batches for r, m in zip(ids, mask, strict=True)]
        assert sorted(rows) == sorted(s.tolist() for s in sequences)
        widths = [ids.shape[1] for ids, _ in batches]
        assert widths == ([9, 4, 1] if is_sorted else [9, 4, 4])


def test_a_folder_has_torch_and_transformers(model_dir: Path) -> None:
    found, missing = find_candidates(model_dir)
    assert [item.name for item in found] == ["torch", "transformers"]
    assert found[0].file_bytes == (model_dir / "model.safetensors").stat().st_size
    assert [item.name for item in missing] == ["onnx"]


def test_what_is_not_installed_is_said(model_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candidates, "_is_installed", lambda name: False)
    found, missing = find_candidates(model_dir)
    assert not found and {item.name for item in missing} == {"torch", "transformers", "onnx"}
    with pytest.raises(SettingsError, match="no back-end can run"):
        bench([model_dir])


class Counting(Engine):
    def __init__(self, path: Path, threads: int) -> None:
        self.seen: list[list[int]] = []

    def run(self, sequences: Sequence[Any]) -> None:
        self.seen.append([len(ids) for ids in sequences])


def test_a_worker_answers_with_seconds_and_memory() -> None:
    engine = Counting(Path(), 1)
    engine.first()
    out = io.StringIO()
    command = json.dumps({"lengths": [3, 5], "vocabulary": 9, "seed": 1, "is_sorted": True})
    serve(engine, io.StringIO(command + "\n" + command + "\n"), out)
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert engine.seen == [[8], [3, 5], [3, 5]] and len(lines) == 2
    assert lines[0]["seconds"] >= 0
    if sys.platform == "linux":
        assert 5 < lines[0]["rss_mb"] <= lines[0]["peak_rss_mb"]
    assert set(memory()) == {"rss_mb", "peak_rss_mb"}


@pytest.mark.slow
def test_a_real_worker_starts_measures_and_ends() -> None:
    worker = Worker("gemm", Path(), 1)
    assert worker.start_seconds > 0 and worker.run((), 8, 0)["seconds"] > 0
    worker.close()
    with pytest.raises(SettingsError, match=r"the back-end stopped: .*unknown back-end"):
        Worker("nothing", Path(), 1)


class Fake(Worker):
    """A worker that takes a fixed time, or stops at the mix."""

    started: ClassVar[list[str]] = []

    def __init__(self, engine: str, path: Path, threads: int) -> None:
        self.engine, self.start_seconds = engine, 0.5
        self.ready = {"rss_mb": 50.0}
        self.started.append(engine)

    def run(
        self, lengths: Sequence[int], vocabulary: int, seed: int, *, is_sorted: bool = True
    ) -> dict[str, Any]:
        assert is_sorted
        if self.engine == "torch" and len(lengths) > 1:
            raise SettingsError("the back-end stopped: out of memory")
        return {"seconds": 0.001 * (sum(lengths) or 10), "peak_rss_mb": 60.0}

    def close(self) -> None:
        self.started.append(f"end of {self.engine}")


def test_back_ends_take_turns_and_one_that_stops_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "Worker", Fake)
    monkeypatch.setattr(run, "SETTLE_SECONDS", 0.0)
    both = [Candidate(name, name, Path(), None, 0) for name in ("torch", "transformers")]
    found, gemm = measure(both, BenchJob((16,), (4, 4), 3, 1, 99))
    assert gemm == [0.01] * 3
    assert found[0].fault == "the back-end stopped: out of memory" and not found[0].mix_seconds
    values = found[1].to_dict()
    assert found[1].latency_ms == {16: [16.0] * 12}  # 4 in each turn, the first of all thrown away
    assert values["latency_ms"]["16"]["p50"] == pytest.approx(16) and values["fault"] is None
    assert values["mix_seconds"] == pytest.approx(0.008) and values["cold_start_seconds"] == 0.5
    assert found[1].cold_start_seconds == [0.5] * 3
    with pytest.raises(SettingsError, match="starts is 0"):
        run._started(both[0], BenchJob((3,), (3,), 1, 1, 9, starts=0), Measured("x"))


def test_the_whole_report(model_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(run, "Worker", Fake)
    monkeypatch.setattr(run, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(report, "_score", lambda *_: {"accuracy": 0.5})
    data = tmp_path / "texts.txt"
    data.write_text("the lamp is fine\n\na broken chair\n")
    made = bench([model_dir], data=data, lengths=(16, 64, 999), rounds=2, threads=1)
    values = made.to_dict()
    assert values["mix"]["texts"] == 2 and values["mix"]["source"] == "texts.txt"
    assert [row["name"] for row in values["backends"]] == ["torch", "transformers"]
    assert set(values["backends"][1]["latency_ms"]) == {"16", "64"}
    row = values["backends"][1]
    assert row["texts_per_second"] == pytest.approx(2 / row["mix_seconds"])
    assert row["of_gemm"] == pytest.approx(row["gflops"] / values["gemm_gflops"])
    text = "\n".join(made.lines())
    assert "16.0/16.0" in text and "out of memory" in text and "without   onnx" in text
    for name in ("a.png", "a.svg"):
        made.save_plot(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1000
    with pytest.raises(SettingsError, match=r"must end in \.png"):
        made.save_plot(tmp_path / "a.pdf")


def test_numbers_that_cannot_be(model_dir: Path, tmp_path: Path) -> None:
    for options in ({"rounds": 0}, {"lengths": (2,)}, {"lengths": ()}):
        with pytest.raises(SettingsError, match="at least one round"):
            bench([model_dir], **options)  # type: ignore[arg-type]
    (tmp_path / "empty.txt").write_text("\n\n")
    from litebert.errors import DataError

    with pytest.raises(DataError, match="no text"):
        bench([model_dir], data=tmp_path / "empty.txt")


def test_the_mix_is_fixed_and_an_empty_report_prints() -> None:
    lengths = typical_lengths()
    assert (
        len(lengths) == 64
        and lengths == typical_lengths()
        and 5 <= min(lengths) <= max(lengths) <= 128
    )
    assert ENGINES.get("gemm")(Path(), 1).run([]).shape == (2048, 3072)
    empty = BenchReport(
        1, 1, {"texts": 1, "tokens": 3, "source": "x"}, 1.0, (), (Missing("a", "b"),)
    )
    assert empty.lines()[-1] == "without   a: b"
