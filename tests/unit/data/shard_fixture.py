"""A tiny shard folder for tests: original sentences, a tiny learnt vocabulary, real files.

Use from another test folder: `sys.path.insert(0, ".../tests/unit/data")`, as for other helpers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from litebert.data.shards import ShardInfo, ShardSet, ShardWriter, dtype_for, write_manifest
from litebert.text.tokenizer import Tokenizer
from litebert.text.vocabulary import train_vocabulary

PEOPLE = ("The gardener", "A young pilot", "My aunt", "The old clerk", "Our teacher")
DEEDS = ("planted", "painted", "forgot", "repaired", "weighed", "sold")
THINGS = ("twelve apple trees", "the harbour wall", "a blue bicycle", "3 clocks", "her umbrella")
ENDS = ("before breakfast.", "in heavy rain.", "without a word!", "for the second time.")


def sample_documents(count: int = 24, sentences: int = 9) -> list[list[str]]:
    """Documents of 1 to `sentences` different sentences each, always the same."""
    documents: list[list[str]] = []
    for number in range(count):
        size = 1 + number % sentences
        documents.append(
            [
                " ".join(
                    (
                        PEOPLE[(number + i) % len(PEOPLE)],
                        DEEDS[(number * 3 + i) % len(DEEDS)],
                        THINGS[(number * 7 + i * 2) % len(THINGS)],
                        ENDS[(number + i * 3) % len(ENDS)],
                    )
                )
                for i in range(size)
            ]
        )
    return documents


def make_shards(
    tmp_path: Path,
    documents: list[list[str]] | None = None,
    vocab: int | Tokenizer = 120,
    *,
    documents_per_shard: int = 10,
) -> ShardSet:
    """Write the documents (lists of sentences) as shards in `tmp_path/shards` and open them.

    Args:
        tmp_path: a folder of the test.
        documents: sentences of each document; `sample_documents()` when None.
        vocab: pieces of the vocabulary that is learnt from them, or a tokenizer.
        documents_per_shard: how many documents go into one shard.
    """
    documents = sample_documents() if documents is None else documents
    if isinstance(vocab, Tokenizer):
        tokenizer = vocab
    else:
        texts = [sentence for document in documents for sentence in document]
        tokenizer = train_vocabulary(texts, vocab, tmp_path / "vocabulary")
    folder = tmp_path / "shards"
    folder.mkdir(parents=True)
    infos: list[ShardInfo] = []
    for index, first in enumerate(range(0, len(documents), documents_per_shard)):
        with ShardWriter(folder, index, dtype_for(tokenizer.vocab_size)) as writer:
            for document in documents[first : first + documents_per_shard]:
                pieces = [tokenizer.pieces(sentence) for sentence in document]
                writer.add_document(
                    [
                        (np.asarray(p.ids, np.int32), np.asarray(p.word_starts, np.bool_))
                        for p in pieces
                    ]
                )
            infos.append(writer.finish())
    write_manifest(folder, infos, tokenizer, {"made_by": "a test"})
    return ShardSet.open(folder)
