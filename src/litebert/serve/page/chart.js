// A small chart of something by depth.

import { svg } from "./dom.js";

const WIDE = 340;
const HIGH = 132;
const LEFT = 46;
const RIGHT = 12;
const TOP = 12;
const BOTTOM = 24;

/**
 * Return the drawing.
 * `points` are `{depth, value}`; `depth` is marked; `write(value)` gives the words at the axis;
 * `isLine` joins the points; `label` is what a screen reader says; `from` is the lowest value shown.
 */
export function depthChart({ points, depths, depth, write, label, isLine = true, from = null }) {
  const values = points.map((point) => point.value);
  let low = from ?? Math.min(...values);
  let high = Math.max(...values);
  if (!(high - low > 0)) {
    high = high === 0 ? 1 : high + Math.abs(high) * 0.05;
    low = from ?? low - Math.abs(low) * 0.05;
  }
  const x = (value) => LEFT + (depths === 1 ? 0.5 : (value - 1) / (depths - 1)) * (WIDE - LEFT - RIGHT);
  const y = (value) => TOP + (1 - (value - low) / (high - low)) * (HIGH - TOP - BOTTOM);
  const sorted = [...points].sort((a, b) => a.depth - b.depth);
  const step = Math.max(1, Math.ceil(depths / 8));
  const ticks = Array.from({ length: depths }, (_, index) => index + 1)
    .filter((value) => value === 1 || value === depths || (value % step === 0 && depths - value >= step / 2));
  return svg("svg", { class: "chart", viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": label },
    [low, high].map((value) => [
      svg("line", { class: "grid", x1: LEFT, x2: WIDE - RIGHT, y1: y(value), y2: y(value) }),
      svg("text", { x: LEFT - 6, y: y(value) + 4, "text-anchor": "end" }, write(value)),
    ]),
    ticks.map((value) => svg("text", { x: x(value), y: HIGH - 6, "text-anchor": "middle" }, String(value))),
    svg("line", { class: "now", x1: x(depth), x2: x(depth), y1: TOP - 4, y2: HIGH - BOTTOM }),
    isLine && svg("polyline", { class: "line", points: sorted.map((point) => `${x(point.depth)},${y(point.value)}`).join(" ") }),
    sorted.map((point) => svg("circle", {
      class: point.depth === depth ? "dot here" : "dot", cx: x(point.depth), cy: y(point.value), r: point.depth === depth ? 5 : 3,
    }, svg("title", {}, `depth ${point.depth}: ${write(point.value)}`))));
}
