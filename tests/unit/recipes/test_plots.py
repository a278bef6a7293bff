"""Every figure is drawn for any number of classes, as PNG, SVG and page element."""

from __future__ import annotations

import builtins
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from sample_run import hostile_run, sample_run

from litebert.errors import MissingDependencyError
from litebert.recipes.figures import save_plots
from litebert.recipes.plots import PLOTS, draw_plots
from litebert.recipes.summary import Curve

pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def drawn():
    return draw_plots(sample_run(8))


def texts(svg: str) -> str:
    return " ".join(node.text or "" for node in ET.fromstring(svg).iter(f"{SVG}text"))  # noqa: S314


def test_everything_is_drawn_and_saved(drawn, tmp_path):
    assert set(drawn) == set(PLOTS) - {"points"}
    save_plots(drawn, tmp_path / "plots")
    for name, plot in drawn.items():
        assert (tmp_path / "plots" / f"{name}.png").read_bytes()[:4] == b"\x89PNG"
        saved = (tmp_path / "plots" / f"{name}.svg").read_text(encoding="utf-8")
        assert saved == plot.svg
        ET.fromstring(saved)  # noqa: S314


def test_the_same_run_gives_the_same_files(drawn):
    assert draw_plots(sample_run(8), ["baselines"]) == {"baselines": drawn["baselines"]}


def test_figures_say_what_they_show(drawn):
    assert "this model" in texts(drawn["baselines"].svg)
    assert "bag of words" in texts(drawn["baselines"].svg)
    assert "learning rate" in texts(drawn["curves"].svg)
    assert "refund" in texts(drawn["confusion"].svg)
    assert "limit 64" in texts(drawn["lengths"].svg)


@pytest.mark.parametrize("classes", [2, 30, 150])
def test_any_number_of_classes(classes):
    run = sample_run(classes)
    words = texts(draw_plots(run, ["confusion"])["confusion"].svg)
    assert (run.labels[1] in words) == (classes < 100)


def test_regression_has_points_instead_of_classes():
    run = sample_run(2).model_copy(
        update={"kind": "regression", "confusion": (), "reliability": (), "lengths": {},
                "points": ((1.0, 1.2), (2.0, 1.9)), "loss": Curve(), "eval_scores": {}}
    )  # fmt: skip
    assert set(draw_plots(run)) == {"baselines", "points"}


def test_a_run_without_numbers_has_no_figures():
    run = sample_run(2).model_copy(
        update={"confusion": (), "reliability": (), "lengths": {}, "loss": Curve(),
                "eval_scores": {}, "scores": {}}
    )  # fmt: skip
    assert draw_plots(run) == {}


def test_page_element_follows_the_colours_of_the_page(drawn):
    for plot in drawn.values():
        body = plot.for_page("A title")
        assert body.startswith("<svg") and "<title>A title</title>" in body
        assert "var(--ink)" in body and "#1d2430" not in body
        assert "<metadata" not in body and "<?xml" not in body


def test_very_long_texts_do_not_squeeze_the_others():
    run = sample_run(2).model_copy(update={"lengths": {10: 990, 12: 1000, 100_000: 1}})
    assert "and more" in texts(draw_plots(run, ["lengths"])["lengths"].svg)


def test_hostile_names_are_drawn_as_text():
    for plot in draw_plots(hostile_run(), ["baselines", "curves", "confusion"]).values():
        tree = ET.fromstring(plot.svg)  # noqa: S314
        assert not {node.tag for node in tree.iter()} & {f"{SVG}script", f"{SVG}a"}


def test_no_global_state_is_left_behind(drawn):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    draw_plots(sample_run(2), ["baselines"])
    assert dict(mpl.rcParams) == before
    assert (
        "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()
    )


def test_a_missing_matplotlib_names_the_extra(monkeypatch):
    real = builtins.__import__

    def absent(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingDependencyError, match=r"litebert\[train\]"):
        draw_plots(sample_run(2))
