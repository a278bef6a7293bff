"""The data sets that the task `similarity` learns, and the task made of their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

from litebert.data.similar import SimilarRecord, read_named_pairs, read_similar
from litebert.errors import DataError, SettingsError
from litebert.settings import build_settings
from litebert.tasks.records import RECORD_KINDS, RecordKind
from litebert.tasks.similarity import Similarity

__all__ = ["make_similarity"]


def make_similarity(
    records: Sequence[Any],
    options: Mapping[str, Any],
    *,
    low: float | None = None,
    high: float | None = None,
) -> Similarity:
    """Build the task of training records: scored pairs if they have scores, else a search.

    Without `low` and `high` scores in [0, 1] are cosines, those in [0, 5] fifths, and others are
    spread over their own range.

    Raises:
        SettingsError: unknown or wrong option, or one that contradicts the records.
        DataError: no records, or all scores are one number.
    """
    found = cast("Sequence[SimilarRecord]", records)
    if not found:
        raise DataError("there are no records to learn from; give a file with pairs of texts")
    scores = [record.score for record in found if record.score is not None]
    told = dict(options)
    form = told.get("form", "scored" if scores else "search")
    if form == "scored" and not scores:
        raise SettingsError(
            "task.form is 'scored', but the pairs have no scores; leave it out, or name the score "
            "column `score`"
        )
    values: dict[str, Any] = {
        "form": form,
        "metric": "spearman" if form == "scored" else "mrr_at_10",
    }
    if form == "scored":
        least, most = min(scores), max(scores)
        if least == most:
            raise DataError(
                f"all {len(scores):,} scores are {least:g}, so there is nothing to learn; give pairs of "
                "different similarity, or leave the score column out",
                path=found[0].path,
            )
        if low is not None and high is not None:
            values |= {"score_low": low, "score_high": high}
        elif least >= 0 and most <= 1:
            values |= {"score_low": 0.0, "score_high": 1.0}
        elif least >= 0 and most <= 5:
            values |= {"score_low": 0.0, "score_high": 5.0}
        else:
            values |= {"score_low": least, "score_high": most}
    return build_settings(Similarity, values | told)


RECORD_KINDS.register("similarity")(
    RecordKind(
        "similarity",
        "tables of sentence1, sentence2, score; or of anchor, positive (and negative)",
        read_similar,
        make_similarity,
        takes_columns=True,
    )
)
for _name, _help, _reader, _low in (
    ("stsb", "STS-B of GLUE, scores 0 to 5", "glue/stsb", 0.0),
    ("sick", "SICK relatedness, scores 1 to 5", "sick/relatedness", 1.0),
    ("jsts", "JSTS of JGLUE (Japanese), scores 0 to 5", "jglue/jsts", 0.0),
):
    RECORD_KINDS.register(_name)(
        RecordKind(
            _name,
            _help,
            partial(read_named_pairs, name=_reader),
            partial(make_similarity, low=_low, high=5.0),
        )
    )
