"""`prepare_corpus`: the same bytes for any number of workers and interruptions; refusals by name."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from litebert.checkpoint.fs import StorageError
from litebert.checkpoint.lock import RunLock
from litebert.data.corpus import CorpusOptions
from litebert.data.shards import ShardSet
from litebert.errors import CheckpointError, DataError, SettingsError
from litebert.recipes.prepare.encode import MAX_SENTENCE_CHARS, DocumentEncoder, EncodingPlan
from litebert.recipes.prepare.run import LOCK_FILE, prepare_corpus
from litebert.recipes.prepare.settings import PrepareSettings
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary
from litebert.train.stop import StopRequest

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from shard_fixture import DEEDS, ENDS, PEOPLE, THINGS, sample_documents

SMALL = {"shard_tokens": 1024, "eval_fraction": 0.1, "sentences": "lines"}


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    train_vocabulary([s for d in sample_documents(200) for s in d], 120, folder)
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for name in range(3):
        blocks = [
            "\n".join(f"{s} {name} {i}" for s in document)
            for i, document in enumerate(sample_documents(60))
        ]
        (folder / f"{name}.txt").write_text("\n\n".join(blocks), encoding="utf-8")
    return folder


def settings(**changes: Any) -> PrepareSettings:
    return PrepareSettings(**(SMALL | changes))


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != LOCK_FILE
    }


def prepare(source: Path, vocabulary: Path, out: Path, **changes: Any) -> Any:
    workers = changes.pop("workers", 1)
    stop = changes.pop("stop", None)
    return prepare_corpus(
        [source],
        vocabulary,
        out,
        settings(**changes),
        workers=workers,
        stop=stop,
        on_progress=changes.pop("on_progress", None),
    )


@pytest.fixture(scope="module")
def finished(corpus: Path, vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("finished") / "out"
    outcome = prepare(corpus, vocabulary, out)
    assert outcome.shards is not None
    assert len(outcome.shards.shards) > 3
    return out


def test_shards_hold_the_corpus_in_order(finished: Path, corpus: Path, vocabulary: Path) -> None:
    shards, held = ShardSet.open(finished, "full"), ShardSet.open(finished / "eval", "full")
    assert shards.num_documents + held.num_documents == 180
    assert 5 < held.num_documents < 40
    tokenizer = Tokenizer.from_pretrained(vocabulary)
    wanted = [
        tokenizer.pieces(sentence).ids
        for path in sorted(corpus.iterdir())
        for sentence in path.read_text(encoding="utf-8").split("\n")
        if sentence
    ]
    found = {
        tuple(shard.ids[a:b].tolist())
        for part in (shards, held)
        for shard in part.shards
        for a, b in zip(shard.sentences, shard.sentences[1:], strict=False)
    }
    assert found == set(map(tuple, wanted))
    assert tuple(shards.shards[0].ids[: shards.shards[0].sentences[1]].tolist()) in {
        tuple(wanted[0]), *map(tuple, wanted[1:20])}  # fmt: skip


def test_reports_count_and_hold_no_times(finished: Path) -> None:
    report = json.loads((finished / "report.json").read_text())
    counts = report["counts"]
    assert counts["documents"] == 180
    assert counts["train"]["documents"] + counts["eval"]["documents"] == 180
    assert counts["train"]["words"] < counts["train"]["tokens"]
    assert "seconds" not in json.dumps(report)
    text = (finished / "report.md").read_text()
    assert "180 documents" in text
    assert "| tokens |" in text


def test_the_number_of_workers_does_not_matter(
    finished: Path, corpus: Path, vocabulary: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("litebert.recipes.prepare.batches._BATCH_CHARS", 2000)  # other batches too
    prepare(corpus, vocabulary, tmp_path / "out", workers=2)
    assert digests(tmp_path / "out") == digests(finished)


@pytest.mark.parametrize("dedup", ["none", "near"])
def test_a_run_that_is_stopped_again_and_again_gives_the_same_bytes(
    corpus: Path, vocabulary: Path, tmp_path: Path, monkeypatch: Any, dedup: str
) -> None:
    monkeypatch.setattr("litebert.recipes.prepare.batches._BATCH_CHARS", 9000)
    prepare(corpus, vocabulary, tmp_path / "whole", dedup=dedup)
    out, last, stops = tmp_path / "out", -1, 0
    while True:
        stop = StopRequest()
        before = None

        def on_progress(progress: Any, stop: StopRequest = stop) -> None:
            nonlocal before
            before = progress.shards if before is None else before
            if progress.shards > before:
                stop.request(15)

        outcome = prepare_corpus(
            [corpus], vocabulary, out, settings(dedup=dedup), workers=1, stop=stop,
            on_progress=on_progress,
        )  # fmt: skip
        if outcome.shards is not None:
            break
        assert outcome.signal == 15
        assert not list(out.glob(".shard*"))
        done = json.loads((out / "progress.json").read_text())["documents"]
        assert done > last  # nothing of a finished shard is done again
        last, stops = done, stops + 1
    assert stops >= 1
    assert digests(out) == digests(tmp_path / "whole")


def test_strays_of_a_killed_run_are_removed(
    corpus: Path, vocabulary: Path, finished: Path, tmp_path: Path
) -> None:
    stop = StopRequest()
    stop.request(2)
    prepare(corpus, vocabulary, tmp_path / "out", stop=stop)
    (tmp_path / "out" / "shard-00077.ids.bin").write_bytes(b"half a shard")
    (tmp_path / "out" / ".shard-00078.ids.bin.tmp").write_bytes(b"half a shard")
    (tmp_path / "out" / ".progress.json.tmp-99999999").write_bytes(b"half a report")
    prepare(corpus, vocabulary, tmp_path / "out")
    assert digests(tmp_path / "out") == digests(finished)


def test_a_place_inside_the_input_is_refused(vocabulary: Path, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("One sentence. Another one.", encoding="utf-8")
    for out in (tmp_path / "texts" / "shards", tmp_path / "texts"):
        with pytest.raises(SettingsError, match="lies inside the input folder"):
            prepare(tmp_path / "texts", vocabulary, out)
    assert [path.name for path in (tmp_path / "texts").iterdir()] == ["a.txt"]


def begun(corpus: Path, vocabulary: Path, out: Path) -> Path:
    """A half-finished folder with some shards."""
    stop = StopRequest()
    stop.request(2)
    prepare(corpus, vocabulary, out, stop=stop)
    assert (out / "progress.json").exists()
    return out


def test_a_half_finished_folder_refuses_other_options_files_and_tokenizers(
    corpus: Path, vocabulary: Path, tmp_path: Path
) -> None:
    own = Path(shutil.copytree(corpus, tmp_path / "corpus"))
    out = begun(own, vocabulary, tmp_path / "out")
    with pytest.raises(
        SettingsError, match=r"half-finished preparation with seed = 0, now it is 5"
    ):
        prepare(own, vocabulary, out, seed=5)
    other = tmp_path / "other"
    train_vocabulary([f"{p} {d}" for p in PEOPLE for d in DEEDS] + [*THINGS, *ENDS], 60, other)
    with pytest.raises(SettingsError, match="with tokenizer = "):
        prepare(own, other, out)
    path = own / "1.txt"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("gardener", "Gardener"), encoding="utf-8")
    with pytest.raises(SettingsError, match="a file of the corpus was changed"):
        prepare(own, vocabulary, out)
    path.write_text(text + " more", encoding="utf-8")
    with pytest.raises(SettingsError, match="with input_bytes = "):
        prepare(own, vocabulary, out)


def test_a_damaged_finished_shard_is_named_on_resume(
    corpus: Path, vocabulary: Path, tmp_path: Path
) -> None:
    out = begun(corpus, vocabulary, tmp_path / "out")
    path = out / "shard-00001.ids.bin"
    path.write_bytes(path.read_bytes()[:-2])
    with pytest.raises(DataError, match=r"shard-00001\.ids\.bin"):
        prepare(corpus, vocabulary, out)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format_version": 9}'])
def test_a_damaged_state_is_named(
    corpus: Path, vocabulary: Path, tmp_path: Path, text: str
) -> None:
    (tmp_path / "progress.json").write_text(text)
    with pytest.raises(DataError, match=r"progress\.json: the state"):
        prepare(corpus, vocabulary, tmp_path)


def test_a_finished_folder_is_left_alone(finished: Path, corpus: Path, vocabulary: Path) -> None:
    before = digests(finished)
    outcome = prepare(corpus, vocabulary, finished)
    assert outcome.was_finished
    assert outcome.eval_shards is not None
    assert digests(finished) == before
    with pytest.raises(SettingsError, match="finished preparation with dedup = 'none'"):
        prepare(corpus, vocabulary, finished, dedup="exact")


def test_a_folder_with_other_things_is_refused(
    corpus: Path, vocabulary: Path, tmp_path: Path
) -> None:
    (tmp_path / "thesis.doc").write_text("mine")
    with pytest.raises(SettingsError, match=r"holds 'thesis.doc'"):
        prepare(corpus, vocabulary, tmp_path)


def test_a_second_process_is_refused(corpus: Path, vocabulary: Path, tmp_path: Path) -> None:
    with RunLock(tmp_path / LOCK_FILE), pytest.raises(CheckpointError, match="in use by process"):
        prepare(corpus, vocabulary, tmp_path)


def test_dropped_documents_are_counted_by_reason(vocabulary: Path, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    long = " ".join(f"{p} {d} {t} {e}" for p in PEOPLE for d in DEEDS for t in THINGS for e in ENDS)
    blocks = [long, "hi", long.upper(), long + " again", "The gardener sold 3 clocks in rain."]
    (folder / "a.txt").write_text("\n\n".join(blocks))
    (folder / "b.txt").write_bytes(b"A fine line of text.\n\n\xff\xfe bad bytes \xff\n")
    (folder / "c.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(2000))
    outcome = prepare(
        folder, vocabulary, tmp_path / "out", dedup="near", min_characters=5, eval_fraction=0.0
    )
    tally = outcome.tally
    assert tally.dropped == {"too short": 1, "duplicate": 1, "near-duplicate": 1}
    assert tally.train.documents == 3
    assert sum(tally.faults.values()) == 2
    assert tally.faults["bad bytes"] == 1
    text = (tmp_path / "out" / "report.md").read_text()
    assert "b.txt:3" in text
    assert "1 x near-duplicate" in text
    assert outcome.eval_shards is None


def test_a_fault_is_an_error_when_told_so(vocabulary: Path, tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_bytes(b"A fine line of text.\n\n\xff\xfe bad bytes \xff\n")
    with pytest.raises(DataError, match=r"b\.txt"):
        prepare(
            tmp_path / "b.txt", vocabulary, tmp_path / "out", corpus=CorpusOptions(on_bad="error")
        )


def test_nothing_left_is_an_error_that_says_why(vocabulary: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hi\n\nho\n")
    with pytest.raises(DataError, match="2 documents were read, 2 too short"):
        prepare(tmp_path / "a.txt", vocabulary, tmp_path / "out", min_characters=100)
    assert [path.name for path in (tmp_path / "out").iterdir()] in ([], ["prepare.lock"])
    prepare(tmp_path / "a.txt", vocabulary, tmp_path / "out", min_characters=1)  # as advised


def test_a_disk_that_refuses_keeps_what_is_finished(
    corpus: Path, vocabulary: Path, finished: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    from litebert.data.shards import ShardWriter

    real, calls = ShardWriter.finish, 0

    def full(self: ShardWriter) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise OSError(28, "No space left on device", "shard")
        return real(self)

    monkeypatch.setattr(ShardWriter, "finish", full)
    with pytest.raises(StorageError, match="finished shards are kept") as caught:
        prepare(corpus, vocabulary, tmp_path / "out")
    assert caught.value.errno == 28
    prepare(corpus, vocabulary, tmp_path / "out")
    assert digests(tmp_path / "out") == digests(finished)


def test_an_endless_sentence_is_cut_and_counted(vocabulary: Path) -> None:
    encoder = DocumentEncoder(vocabulary, EncodingPlan())
    found = encoder(["word " * MAX_SENTENCE_CHARS, "x" * (MAX_SENTENCE_CHARS + 1), "one"])
    assert found.num_cut.tolist() == [1, 1, 0]
    assert found.document_lengths.tolist() == [5, 2, 1]
    assert int(found.sentence_lengths.sum()) == len(found.ids) == len(found.word_starts)


def test_held_out_documents_follow_text_and_seed(vocabulary: Path) -> None:
    texts = [f"document number {i}" for i in range(400)]
    first = DocumentEncoder(vocabulary, EncodingPlan(eval_fraction=0.25))(texts).is_eval
    again = DocumentEncoder(vocabulary, EncodingPlan(eval_fraction=0.25))(
        [t.upper() for t in texts]
    )
    other = DocumentEncoder(vocabulary, EncodingPlan(eval_fraction=0.25, seed=1))(texts).is_eval
    assert first.tolist() == again.is_eval.tolist()
    assert first.tolist() != other.tolist()
    assert 60 < first.sum() < 140
