// The depth dial: how many depths are run, when a text may leave earlier, and how long it took.

import { depthChart } from "./chart.js";
import { el, freshId, replace } from "./dom.js";
import { count, duration, number, percent, readable } from "./format.js";

const RULES = ["patience=1", "patience=2", "confidence=0.8", "confidence=0.9", "confidence=0.95", "entropy=0.2", "entropy=0.4"];
const SHARES = /accuracy|f1|precision|recall|exact|match/;

/**
 * Return `{node, depth, options(), isWhole, note(ms), refresh()}`; `onChange` is told when the dial turns.
 * `options()` is what a request says: nothing where the server's own depth is meant.
 */
export function makeDial(info, onChange) {
  const depths = info.depths ?? 1;
  const usual = info.depth ?? depths;
  const times = new Map(); // depth -> milliseconds of the latest answers
  const id = freshId("depth");
  let depth = usual;
  let rule = "";

  const output = el("output", { class: "dial-value", for: id });
  const latency = el("span", { class: "dial-time" });
  const range = el("input", {
    id, type: "range", min: 1, max: depths, step: 1, value: depth,
    on: { input: () => set(Number(range.value)) },
  });
  const ruleId = freshId("leave");
  const chosen = info.curve?.chosen;
  const select = el("select", { id: ruleId, on: { change: () => { rule = select.value; say(); onChange(); } } },
    el("option", { value: "" }, info.exit ? `as the server does: ${info.exit}` : "never"),
    chosen?.rule && el("option", { value: "auto" }, `auto: ${chosen.rule}, chosen for this model`),
    (info.kind === "regression" ? RULES.filter((name) => name.startsWith("patience")) : RULES)
      .map((name) => el("option", { value: name }, name)));
  const ruleHint = el("p", { class: "hint" });
  const curve = el("figure", {});
  const clock = el("figure", {});

  function set(value) {
    depth = value;
    say();
    onChange();
  }

  function say() {
    output.textContent = `${depth} of ${depths}`;
    range.value = depth;
    range.style.setProperty("--at", depths === 1 ? 1 : (depth - 1) / (depths - 1));
    range.setAttribute("aria-valuetext", `${depth} of ${count(depths, "depth")}`);
    ruleHint.textContent = ruleWords();
    drawCurve();
    drawClock();
  }

  function ruleWords() {
    if (rule === "auto") {
      const speed = info.curve.full.speed && chosen.speed ? `, ${(chosen.speed / info.curve.full.speed).toFixed(1)} times as many texts a second` : "";
      return `On ${info.curve.data}: ${score(chosen.score)} instead of ${score(info.curve.full.score)}${speed}.`;
    }
    if (rule.startsWith("patience")) return "A text leaves when its answer has stayed the same for so many depths more.";
    if (rule.startsWith("confidence")) return "A text leaves when its answer has at least this probability.";
    if (rule.startsWith("entropy")) return "A text leaves when its probabilities are this decided: 0 is certain, 1 is a guess.";
    return "";
  }

  function score(value) {
    return SHARES.test(info.curve.metric) ? percent(value) : number(value);
  }

  function drawCurve() {
    if (!info.curve) {
      replace(curve, el("figcaption", {}, "Score by depth"),
        el("p", { class: "hint" }, "Not measured for this model. ", el("code", {}, "litebert exits MODEL DATA"), " before the export does it."));
      return;
    }
    const points = info.curve.points.map((point) => ({ depth: point.depth, value: point.score }));
    const here = points.find((point) => point.depth === depth);
    replace(curve,
      el("figcaption", {}, `${readable(info.curve.metric)} on ${count(info.curve.examples, "text")} of ${info.curve.data}`,
        here && el("strong", {}, score(here.value))),
      depthChart({
        points, depths, depth, write: score,
        label: `${readable(info.curve.metric)} by depth: ${points.map((point) => `${point.depth}: ${score(point.value)}`).join(", ")}`,
      }));
  }

  function drawClock() {
    const points = [...times].map(([at, list]) => ({ depth: at, value: middle(list) }));
    const here = points.find((point) => point.depth === depth);
    replace(clock, el("figcaption", {}, "time, measured here", here && el("strong", {}, duration(here.value))),
      points.length === 0
        ? el("p", { class: "hint" }, "Turn the dial: each answer is timed.")
        : depthChart({
          points, depths, depth, write: duration, from: 0, isLine: points.length > 2,
          label: `Time by depth: ${points.map((point) => `${point.depth}: ${duration(point.value)}`).join(", ")}`,
        }));
  }

  const node = el("section", { class: "card dial", "aria-label": "Depth" },
    el("div", { class: "dial-turn" },
      el("div", { class: "dial-head" }, el("label", { for: id }, "Depth"), output, latency),
      range,
      el("p", { class: "hint" }, "Fewer depths are faster. The answer follows as you turn."),
      info.exits && el("div", { class: "field" }, el("label", { for: ruleId }, "Leave early"), select, ruleHint)),
    el("div", { class: "dial-charts" }, (info.curve || info.exits) && curve, clock));
  say();

  return {
    node,
    set,
    get depth() { return depth; },
    /** Whether every text runs exactly `depth` depths. */
    get isFixed() { return rule === "" && !info.exit; },
    options(view, at = depth) {
      const told = at === usual ? {} : { depth: at };
      return rule !== "" && view.route === "/predict" ? { ...told, exit: rule } : told;
    },
    /** Take the time of an answer. */
    note(ms, at = depth, isFixed = true) {
      if (at === depth) latency.textContent = duration(ms);
      if (!isFixed) return;
      times.set(at, [...(times.get(at) ?? []), ms].slice(-5));
      drawClock();
    },
    /** Forget the times: they were of another input. */
    forget() {
      times.clear();
      latency.textContent = "";
      drawClock();
    },
    showRule(view) {
      select.disabled = view.route !== "/predict";
    },
  };
}

function middle(list) {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}
