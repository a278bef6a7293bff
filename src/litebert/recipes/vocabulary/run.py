"""Corpus in, folder of tokenizer files out: reading, sampling, learning, measuring."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, field_validator

from litebert.checkpoint.fs import make_folder, remove_tree, replace_folder_atomic, write_file
from litebert.data.corpus import CorpusOptions, Fault, corpus_files, read_documents
from litebert.data.corpus.sampling import TextSample, passages
from litebert.errors import DataError
from litebert.recipes.run_folder import require_free
from litebert.recipes.vocabulary.presets import PRESETS
from litebert.recipes.vocabulary.report import (
    MIN_LOST_FRACTION,
    Fit,
    VocabularyReport,
    lost_marks,
    measure_fit,
)
from litebert.settings import Settings
from litebert.text.sentences import sentence_splitter
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary

__all__ = ["VocabularyProgress", "VocabularySettings", "make_vocabulary"]

REPORT_NAME: Final = "vocabulary.json"
_MAX_PARTS: Final = 100
"""With more files than this, the report is by path given."""
_PART_BYTES: Final = 32_000
_MAX_EXAMPLES: Final = 20
_LEAST_SIZE: Final = 50


class VocabularySettings(Settings):
    """How a vocabulary is made."""

    size: int = Field(default=30_000, ge=_LEAST_SIZE, le=1_000_000)
    """Pieces wanted, with the special ones."""
    script: str = "english"
    """Preset of clean-up and coverage, one of `PRESETS`."""
    coverage: float | None = Field(default=None, gt=0.0, le=1.0)
    """Fraction of characters that must not be unknown; None is that of the preset."""
    max_bytes: int = Field(default=50_000_000, ge=10_000, le=4_000_000_000)
    """Bytes to learn from; a larger corpus is sampled."""
    max_sentences: int = Field(default=10_000_000, ge=1_000)
    """Sentences to learn from."""
    sentences: str = "paragraphs"
    """Sentence splitter, for the count and for where passages may be cut."""
    language: str = "en"
    """Language of the sentence splitter."""
    seed: int = Field(default=12345, ge=0, lt=1 << 31)
    """Of the sample."""
    corpus: CorpusOptions = CorpusOptions()

    @field_validator("script")
    @classmethod
    def _known_script(cls, value: str) -> str:
        if value not in PRESETS:
            raise ValueError(f"unknown script; allowed: {', '.join(PRESETS)}")
        return value


@dataclass(frozen=True, slots=True)
class VocabularyProgress:
    """How far the work is.

    Attributes:
        phase: what is being done.
        file: 0-based number of the file that is read.
        files: files of the corpus.
        documents: documents read.
        characters: characters read.
        sample_bytes: bytes in the sample.
    """

    phase: Literal["reading", "learning", "measuring"]
    file: int
    files: int
    documents: int
    characters: int
    sample_bytes: int


class _Part:
    """Counts and a small sample of one file, or of all files below one path."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.documents = 0
        self.characters = 0
        self.sample = TextSample(_PART_BYTES, seed)

    def fit(self, tokenizer: Tokenizer) -> Fit:
        return measure_fit(
            tokenizer,
            self.sample.texts(),
            name=self.name,
            documents=self.documents,
            characters=self.characters,
        )


class _Faults:
    """Counts faults by kind and keeps the first in words."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: list[str] = []

    def __call__(self, fault: Fault) -> None:
        self.counts[fault.kind] += 1
        if len(self.examples) < _MAX_EXAMPLES:
            self.examples.append(str(fault))


def make_vocabulary(
    paths: Sequence[Path],
    out: Path,
    settings: VocabularySettings | None = None,
    *,
    on_progress: Callable[[VocabularyProgress], None] | None = None,
) -> VocabularyReport:
    """Learn a vocabulary, write its folder at once, and return the report, also in the folder.

    The same files, settings and package versions give the same bytes.

    Args:
        paths: files and folders of text.
        out: folder to make; it must not hold anything.
        settings: what is wanted.
        on_progress: told after each document and at each new phase.

    Raises:
        DataError: no text, or a file that cannot be read.
        SettingsError: `out` is taken, or the size cannot hold the characters.
        StorageError: the folder cannot be written.
    """
    settings = settings or VocabularySettings()
    begin = time.monotonic()
    require_free(out)
    temporary = out.absolute().with_name(f".{out.absolute().name}.new-{os.getpid()}")
    make_folder(temporary)  # says now, not after reading everything, if nothing can be written
    remove_tree(temporary)
    sample = TextSample(settings.max_bytes, settings.seed, settings.max_sentences)
    faults = _Faults()
    parts = _parts(paths, settings)
    unique = list({id(part): part for part in parts}.values())
    state = VocabularyProgress("reading", 0, len(parts), 0, 0, 0)
    tell = on_progress or _ignore
    for state in _read(paths, settings, sample, parts, faults):
        tell(state)
    if not sample:
        raise _no_text(paths, faults)
    tell(_phase(state, "learning"))
    preset = PRESETS[settings.script]
    warnings: list[str] = []
    try:
        with _ended_by_ctrl_c():
            tokenizer = train_vocabulary(
                sample.texts(),
                settings.size,
                temporary,
                lower_case=preset.lower_case,
                keep_accents=preset.keep_accents,
                character_coverage=settings.coverage or preset.coverage,
                max_texts=max(settings.max_sentences, len(sample) * 8),
                seed=settings.seed,
                on_warning=lambda text: warnings.append(
                    f"{text} (--script indic, arabic, thai ...)"
                ),
            )
        tell(_phase(state, "measuring"))
        fits = tuple(part.fit(tokenizer) for part in unique if part.documents)
        if not preset.keep_accents and not warnings:
            warnings.extend(_warn_of_marks(unique))
        if tokenizer.vocab_size < settings.size:
            smaller = f" or --size {tokenizer.vocab_size}"
            warnings.append(
                f"the corpus supports {tokenizer.vocab_size:,} pieces, not {settings.size:,}; give "
                f"more text{smaller if tokenizer.vocab_size >= _LEAST_SIZE else ''}"
            )
        report = VocabularyReport(
            settings=settings.model_dump(mode="json"),
            size=tokenizer.vocab_size,
            fingerprint=tokenizer.fingerprint,
            documents=state.documents,
            characters=state.characters,
            sample_bytes=sample.num_bytes,
            sample_sentences=sample.num_sentences,
            is_sampled=not sample.is_whole,
            total=_sum(fits),
            parts=fits,
            faults=dict(faults.counts),
            examples=tuple(faults.examples),
            warnings=tuple(warnings),
            seconds=time.monotonic() - begin,
        )
        text = json.dumps(report.to_json(), indent=2, ensure_ascii=False) + "\n"
        write_file(temporary / REPORT_NAME, text.encode("utf-8", errors="backslashreplace"))
        replace_folder_atomic(temporary, out.absolute())
    except BaseException:
        remove_tree(temporary)
        raise
    return report


@contextlib.contextmanager
def _ended_by_ctrl_c() -> Generator[None]:
    """Let SIGINT end the process at once, as the system does where nobody listens.

    SentencePiece learns for minutes without returning to Python, where Ctrl-C would be seen, and
    takes one that is seen for a fault of the text. Nothing is on disk meanwhile.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _read(
    paths: Sequence[Path],
    settings: VocabularySettings,
    sample: TextSample,
    parts: Sequence[_Part],
    faults: _Faults,
) -> Iterator[VocabularyProgress]:
    splitter = sentence_splitter(settings.sentences, settings.language)
    characters = 0
    stream = read_documents(paths, settings.corpus, on_fault=faults)
    for documents, document in enumerate(stream, start=1):
        part = parts[document.file]
        part.documents += 1
        part.characters += len(document.text)
        characters += len(document.text)
        for passage, sentences in passages(document.text, splitter):
            sample.add(passage, sentences)
            part.sample.add(passage, sentences)
        yield VocabularyProgress(
            "reading", document.file, len(parts), documents, characters, sample.num_bytes
        )


def _parts(paths: Sequence[Path], settings: VocabularySettings) -> list[_Part]:
    """Return the part that each file of the corpus counts to."""
    files = corpus_files(paths)
    if len(files) <= _MAX_PARTS:
        return [_Part(str(file), settings.seed) for file in files]
    given = {path: _Part(str(path), settings.seed) for path in paths}
    return [
        next(part for path, part in given.items() if file == path or path in file.parents)
        for file in files
    ]


def _ignore(progress: VocabularyProgress) -> None:
    del progress


def _phase(
    state: VocabularyProgress, phase: Literal["learning", "measuring"]
) -> VocabularyProgress:
    return VocabularyProgress(
        phase, state.file, state.files, state.documents, state.characters, state.sample_bytes
    )


def _warn_of_marks(parts: Sequence[_Part]) -> list[str]:
    fraction, common = lost_marks(text for part in parts for text in part.sample.texts())
    if fraction < MIN_LOST_FRACTION:
        return []
    return [
        f"{fraction:.1%} of the letters lose a mark ({common}); where marks tell words apart use "
        "--script accents, or the preset of the script"
    ]


def _sum(fits: Sequence[Fit]) -> Fit:
    return Fit(
        "all",
        sum(fit.documents for fit in fits),
        sum(fit.characters for fit in fits),
        sum(fit.sample_characters for fit in fits),
        sum(fit.words for fit in fits),
        sum(fit.pieces for fit in fits),
        sum(fit.unknown_pieces for fit in fits),
        sum(fit.unknown_characters for fit in fits),
    )


def _no_text(paths: Sequence[Path], faults: _Faults) -> DataError:
    seen = ", ".join(f"{count} x {kind}" for kind, count in faults.counts.items()) or "nothing read"
    first = f"; first: {faults.examples[0]}" if faults.examples else ""
    return DataError(f"the corpus holds no text ({seen}{first})", path=paths[0])
