"""A model in headless Chromium beside the same int8 graph in Python: start, speed, outputs, tokens.

`python -m benchmarks.in_browser EXPORT [--rounds 5]`: EXPORT is an encoder that `litebert export onnx` made. The page
comes from a host on this machine, so what is measured of the start is reading, checking, compiling and computing, not
a network. Tokenizers are compared on real texts of ../shared (LITEBERT_SHARED). Results go to
`benchmarks/results/in-browser.json`.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import statistics
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from tests.chromium import Browser, Page
from tests.web.folders import BLANK, make_site
from tests.web.host import web_host
from tests.web.javascript import tokenize

from benchmarks.measuring import machine
from litebert.export.web.tokenizer import tokenizer_data
from litebert.runtime.session import Session
from litebert.text.folder import read_pieces
from litebert.text.tokenizer import Tokenizer

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("LITEBERT_SHARED", ROOT.parent / "shared"))
RESULT = ROOT / "benchmarks" / "results" / "in-browser.json"
OPEN = """(async () => {
  const { openLocal } = await import("./local/backend.js");
  const manifest = await (await fetch("model/manifest.json")).json();
  window.backend = await openLocal(manifest);
  await backend.post("/embed", { inputs: "the first text of all" });
  return performance.now();
})()"""
"""Milliseconds from the start of the navigation to the first answer."""
LENGTHS = (8, 32, 128)
"""Words of the texts whose latency is measured."""
MOST_TEXTS = 400
"""Of each source."""


def real_texts() -> Iterator[tuple[str, list[str]]]:
    """Yield name and texts of each source."""
    data = SHARED / "data"
    for language in ("en", "de", "es", "ru", "ar", "hi", "zh"):
        values = json.loads((data / "xquad" / f"xquad.{language}.json").read_text("utf-8"))
        paragraphs = [p for article in values["data"] for p in article["paragraphs"]]
        texts = [p["context"] for p in paragraphs] + [
            q["question"] for p in paragraphs for q in p["qas"]
        ]
        yield f"xquad {language}", texts
    tweets = sorted((data / "tweeteval" / "sentiment").glob("*text*"))
    yield "tweets", [line for path in tweets for line in path.read_text("utf-8").splitlines()]
    japanese = sorted((data / "jglue").rglob("*valid*.json"))
    lines = [json.loads(line) for path in japanese if "jsts" in path.as_posix()
             for line in path.read_text("utf-8").splitlines()]  # fmt: skip
    yield "jsts", [row[name] for row in lines for name in ("sentence1", "sentence2")]
    rows = csv.reader(io.StringIO((data / "ag_news" / "test.csv").read_text("utf-8")))
    yield "ag_news", [" ".join(row[1:]) for row in rows]


def compare_tokens(name: str, folder: Path, place: Path) -> dict[str, Any]:
    """Tokenize real texts in both languages."""
    pieces = read_pieces(folder)
    tokenizer, data = Tokenizer(pieces), tokenizer_data(pieces, has_words=False)
    counts: dict[str, dict[str, int]] = {}
    examples: list[str] = []
    for source, texts in real_texts():
        texts = texts[:: max(1, len(texts) // MOST_TEXTS)][:MOST_TEXTS]
        found = tokenize(data, texts, place / f"{name}-{source}".replace(" ", "-"))
        wrong_ids = wrong_places = tokens = 0
        for text, told in zip(texts, found, strict=True):
            encoding = tokenizer.encode(text)
            tokens += len(encoding)
            wrong_ids += told["ids"] != encoding.ids
            wrong_places += [tuple(span) for span in told["spans"]] != encoding.offsets
            if told["ids"] != encoding.ids and len(examples) < 10:
                examples.append(text[:200])
        counts[source] = {"texts": len(texts), "tokens": tokens, "other_ids": wrong_ids,
                          "other_places": wrong_places}  # fmt: skip
        print(name, source, counts[source], flush=True)
    return {"sources": counts, "examples": examples}


def ask(page: Page, route: str, body: dict[str, Any]) -> Any:
    return page.js(f"backend.post({json.dumps(route)}, {json.dumps(body)})")


def latency(page: Page, session: Session, words: int) -> dict[str, float]:
    """Milliseconds of one text in the browser and in Python on one thread, taking turns."""
    text = " ".join(["the ship lay at anchor near the harbour"] * 20).split()[:words]
    body = {"inputs": " ".join(text)}
    timed = f"""(async () => {{ const start = performance.now();
      await backend.post("/embed", {json.dumps(body)}); return performance.now() - start; }})()"""
    theirs: list[float] = []
    ours: list[float] = []
    for _ in range(5):
        ours.append(page.js(timed))
        start = time.perf_counter()
        session.embed(body["inputs"])
        theirs.append(1000 * (time.perf_counter() - start))
    print(words, "words", statistics.median(ours), statistics.median(theirs), flush=True)
    return {
        "words": words,
        "browser_ms": statistics.median(ours),
        "python_ms": statistics.median(theirs),
    }


def outputs(page: Page, session: Session) -> dict[str, Any]:
    """How far vectors and probabilities of words are apart."""
    # The last of a source are short: questions, tweets, sentences.
    texts = [text[:300] for _, found in real_texts() for text in found[-8:]]
    ours: list[Any] = []
    for start in range(0, len(texts), 6):
        ours += ask(page, "/embed", {"inputs": texts[start : start + 6]})
    alone = np.concatenate([session.embed([text]) for text in texts])
    single = np.array([ask(page, "/embed", {"inputs": text})[0] for text in texts[::3]])
    found: dict[str, Any] = {
        "texts": len(texts),
        "least_cosine_in_company": float((np.array(ours) * alone).sum(1).min()),
        "least_cosine_alone": float((single * alone[::3]).sum(1).min()),
        "largest_difference_alone": float(np.abs(single - alone[::3]).max()),
    }
    if session.head in ("mlm", "pretraining"):
        mask = session.tokenizer.token(session.tokenizer.mask_id)
        worst, same = 0.0, 0
        asked = [
            f"the {mask} lay in the harbour",
            f"he went to {mask} by train",
            f"a {mask} of tea",
        ]
        for text in asked:
            theirs = {word.token: word.probability for word in session.fill_mask(text, top=50)[0]}
            told = ask(page, "/v1/fill-mask", {"inputs": text, "top_k": 50})
            gaps = [
                abs(row["score"] - theirs[row["token"]]) for row in told if row["token"] in theirs
            ]
            worst = max(worst, *gaps)
            same += told[0]["token"] == max(theirs, key=lambda token: theirs[token])
        found |= {"words_largest_difference": worst, "words_same_best": f"{same}/{len(asked)}"}
    return found


def sizes(site: Path) -> dict[str, Any]:
    """Bytes as they lie there, and as a zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in site.rglob("*"):
            if path.is_file() and path.name != BLANK:
                archive.write(path, path.relative_to(site))
        entries = {entry.filename: entry for entry in archive.infolist()}
    groups = {"runtime": "local/onnxruntime/", "model": "model/"}
    result: dict[str, Any] = {
        "all": [sum(e.file_size for e in entries.values()), len(packed.getvalue())]
    }
    for name, start in groups.items():
        own = [entry for path, entry in entries.items() if path.startswith(start)]
        result[name] = [sum(e.file_size for e in own), sum(e.compress_size for e in own)]
    return result


def in_browser(export: Path, root: Path, rounds: int) -> dict[str, Any]:
    """What the browser does."""
    site = make_site(export, root / "host" / "in" / "a" / "path")
    browser = Browser(root / "profile")
    starts: list[float] = []
    with web_host(root / "host") as address:
        for _ in range(rounds):
            page = browser.open(f"{address}in/a/path/{BLANK}")
            starts.append(page.js(OPEN) / 1000)
            print("seconds to the first answer", starts, flush=True)
            requests, complaints = list(page.requests), list(page.complaints)
            if len(starts) < rounds:
                page.close()
        session = Session(export, threads=1)
        session.embed("warm")
        values = {
            "browser": browser.call("Browser.getVersion")["product"],
            "machine": machine(),
            "bytes_and_zipped": sizes(site),
            "seconds_to_first_answer": {"median": statistics.median(starts), "all": starts},
            "latency": [latency(page, session, words) for words in LENGTHS],
            "outputs": outputs(page, session),
            "other_addresses": [url for url in requests if not url.startswith(address)],
            "complaints": complaints,
        }
        page.close()
    browser.close()
    return values


def main() -> None:
    """Measure and write; what is not measured now stays as it was."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("export", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--no-tokens", action="store_true")
    parser.add_argument("--only-tokens", action="store_true")
    told = parser.parse_args()
    values = json.loads(RESULT.read_text("utf-8")) if RESULT.exists() else {}
    values["command"] = f"python -m benchmarks.in_browser {told.export.name}"
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        if not told.only_tokens:
            values |= in_browser(told.export, root, told.rounds)
        if not told.no_tokens:
            vocabulary = SHARED / "models" / "albert-english-vocab" / "30k-clean.model"
            values["tokens"] = {
                "albert 30k": compare_tokens("albert", vocabulary, root),
                told.export.name: compare_tokens("model", told.export, root),
            }
    RESULT.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
