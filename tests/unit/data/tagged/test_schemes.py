"""Which scheme tags follow, and which entities they make: against a slow reading of the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.tagged.schemes import ONLY_TYPE, entities, find_scheme

Entity = tuple[int, int, str]


def plant(length: int, cuts: list[tuple[int, int, str]]) -> list[Entity]:
    """Entities that do not overlap, out of (gap, size, type)."""
    found: list[Entity] = []
    position = 0
    for gap, size, kind in cuts:
        start = position + gap
        if start + size > length:
            break
        found.append((start, start + size, kind))
        position = start + size
    return found


def write(found: list[Entity], length: int, scheme: str) -> list[str]:
    """Tags of entities, by the table of the module, written down directly."""
    tags = ["O"] * length
    for number, (start, end, kind) in enumerate(found):
        follows = number > 0 and found[number - 1][1] == start and found[number - 1][2] == kind
        last = end - start - 1
        for offset in range(end - start):
            mark = "I"
            if scheme == "IOB1" and offset == 0 and follows:
                mark = "B"
            if scheme == "IOB2" and offset == 0:
                mark = "B"
            if scheme in ("IOBES", "BILOU"):
                single, final = ("S", "E") if scheme == "IOBES" else ("U", "L")
                mark = "B" if offset == 0 else final if offset == last else "I"
                if last == 0:
                    mark = single
            tags[start + offset] = f"{mark}-{kind}"
    return tags


SENTENCES = st.lists(
    st.tuples(
        st.integers(1, 12),
        st.lists(
            st.tuples(st.integers(0, 3), st.integers(1, 4), st.sampled_from(["PER", "LOC", "A-b"])),
            max_size=5,
        ),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.parametrize("scheme", ["IOB1", "IOB2", "IOBES", "BILOU"])
@given(SENTENCES)
def test_entities_survive_every_scheme(
    scheme: str, sentences: list[tuple[int, list[Entity]]]
) -> None:
    planted = [plant(length, cuts) for length, cuts in sentences]
    tags = [
        write(found, length, scheme) for found, (length, _) in zip(planted, sentences, strict=True)
    ]
    finding = find_scheme(tags)
    assert not finding.slips
    assert [entities(parts) for parts in finding.parts] == planted
    used = {tag[0] for sentence in tags for tag in sentence}
    if used & set("ESLU"):
        assert finding.name == scheme
    elif "B" in used and scheme == "IOB2":
        assert finding.name == "IOB2"


@pytest.mark.parametrize(
    ("tags", "name"),
    [
        ([["I-PER", "I-PER", "O"]], "IO"),
        ([["PER", "PER", "O", "e-mail"]], "IO"),
        ([["I-PER", "B-PER", "O"]], "IOB1"),
        ([["B-PER", "I-PER", "O"]], "IOB2"),
        ([["b-per", "i-per", "O"]], "IOB2"),
        ([["B_PER", "I_PER", "O"]], "IOB2"),
        ([["B", "I", "O"]], "IOB2"),
        ([["B-PER", "E-PER", "S-LOC"]], "IOBES"),
        ([["B-PER", "M-PER", "E-PER"]], "IOBES"),
        ([["B-PER", "L-PER", "U-LOC"]], "BILOU"),
        ([["O", "O"], []], "IO"),
    ],
)
def test_the_scheme_is_found_and_said(tags: list[list[str]], name: str) -> None:
    finding = find_scheme(tags)
    assert finding.name == name
    assert not finding.slips
    assert name in finding.reason or finding.reason == "no entities"


def test_bare_tags_have_one_type_and_neighbours_of_io_melt() -> None:
    assert entities(find_scheme([["B", "I", "B"]]).parts[0]) == [
        (0, 2, ONLY_TYPE),
        (2, 3, ONLY_TYPE),
    ]
    assert entities(find_scheme([["PER", "PER", "LOC"]]).parts[0]) == [(0, 2, "PER"), (2, 3, "LOC")]


def test_a_rare_slip_is_read_as_the_official_script_reads_it() -> None:
    clean = [["B-PER", "O"]] * 99
    finding = find_scheme([*clean, ["O", "I-PER", "I-PER"]])
    assert finding.name == "IOB2" and not finding.slips
    assert "99 of 100" in finding.reason
    assert entities(finding.parts[-1]) == [(1, 3, "PER")]


@pytest.mark.parametrize(
    ("tags", "place", "words"),
    [
        ([["B-PER", "O"], ["O", "I-PER"], ["B-LOC"]], (1, 1), "mixes schemes"),
        ([["I-PER"], ["I-LOC"], ["O", "B-LOC"]], (2, 1), "IOB1"),
        ([["B-PER", "E-PER"], ["B-X", "E-X"], ["U-PER"]], (2, 0), "does not go with"),
        ([["B-PER", "O"], ["S-PER"]], (0, 1), "IOBES does not allow"),
        ([["B-PER", "I-LOC", "E-LOC"]], (0, 1), "IOBES does not allow"),
        ([["U-PER"], ["B-PER"]], (1, 0), "BILOU does not allow"),
        ([["B-PER", "O"], ["PER", "O"]], (1, 0), "none of the prefixes"),
        ([["B-PER", "X-PER"]], (0, 1), "none of the prefixes"),
    ],
)
def test_contradictions_are_placed(
    tags: list[list[str]], place: tuple[int, int], words: str
) -> None:
    slips = find_scheme(tags).slips
    assert (slips[0].sentence, slips[0].word) == place
    assert words in slips[0].reason


def chunk_begins(before: str, tag: str) -> bool:
    """The official script's rule for the beginning of an entity, in words.

    B and S always begin. Any other tag but O begins one behind O, behind E and S (which end), and
    where the type changes.
    """
    if tag == "O":
        return False
    return tag[0] in "BS" or before == "O" or before[0] in "ES" or before[2:] != tag[2:]


def chunk_ends(tag: str, after: str) -> bool:
    """The rule for the end: E and S end; else O, B, S or another type behind it ends."""
    if tag == "O":
        return False
    return tag[0] in "ES" or after == "O" or after[0] in "BS" or after[2:] != tag[2:]


@given(
    st.lists(st.sampled_from(["O", *(f"{m}-{t}" for m in "BIES" for t in ("X", "Y"))]), max_size=12)
)
def test_any_sequence_is_read_by_the_official_rules(tags: list[str]) -> None:
    expected: list[Entity] = []
    start = 0
    padded = ["O", *tags, "O"]
    for position, tag in enumerate(tags):
        if chunk_begins(padded[position], tag):
            start = position
        if chunk_ends(tag, padded[position + 2]):
            expected.append((start, position + 1, tag[2:]))
    parts = [("O", "") if tag == "O" else (tag[0], tag[2:]) for tag in tags]
    assert entities(parts) == expected
