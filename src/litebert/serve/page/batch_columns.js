// Which columns of a table a batch reads: a choice for each, made beforehand by their names.

import { el, freshId, replace } from "./dom.js";
import { columnNames, hasHeader, likelyColumn } from "./table.js";

const SHOWN = 5;

/** Return `{node, names, rows(), problem()}` for a table and the columns that a view wants. */
export function makeColumns(table, wanted, onChange) {
  const node = el("div", { class: "columns" });
  const choices = el("div", { class: "fields row" });
  const preview = el("div", { class: "wide" });
  const headerId = freshId("header");
  const header = el("input", { type: "checkbox", id: headerId, on: { change: () => draw() } });
  header.checked = hasHeader(table.rows);
  let picked = new Map();
  let names = [];

  function draw() {
    names = columnNames(table.rows, header.checked);
    picked = new Map();
    const taken = new Set();
    for (const column of wanted) {
      const place = likelyColumn(column, names, table.rows, taken);
      picked.set(column.name, place);
      for (const one of [place].flat()) if (one !== null) taken.add(one);
    }
    replace(choices, wanted.map((column) => (column.many ? boxes(column) : menu(column))));
    drawPreview();
    onChange();
  }

  function menu(column) {
    const id = freshId("column");
    const select = el("select", { id, on: { change: () => {
      picked.set(column.name, select.value === "" ? null : Number(select.value));
      drawPreview();
      onChange();
    } } },
    column.optional && el("option", { value: "" }, "none"),
    names.map((name, place) => el("option", { value: place }, name)));
    select.value = picked.get(column.name) ?? "";
    return el("div", { class: "field" }, el("label", { for: id }, column.label), select);
  }

  function boxes(column) {
    return el("fieldset", { class: "field" }, el("legend", {}, column.label), names.map((name, place) => {
      const id = freshId("column");
      const box = el("input", { type: "checkbox", id, on: { change: () => {
        const all = new Set(picked.get(column.name));
        if (box.checked) all.add(place);
        else all.delete(place);
        picked.set(column.name, [...all].sort((a, b) => a - b));
        drawPreview();
        onChange();
      } } });
      box.checked = picked.get(column.name).includes(place);
      return el("span", { class: "check" }, box, el("label", { for: id }, name));
    }));
  }

  function drawPreview() {
    const used = new Set([...picked.values()].flat());
    const rows = body().slice(0, SHOWN);
    replace(preview, el("table", { class: "plain preview" },
      el("caption", { class: "unseen" }, "First rows"),
      el("thead", {}, el("tr", {}, names.map((name, place) => el("th", { scope: "col", class: used.has(place) ? "used" : null }, name)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, names.map((_, place) => el("td", { class: used.has(place) ? "used" : null },
        el("bdi", { class: "clip" }, row[place] ?? ""))))))));
  }

  function body() {
    return header.checked ? table.rows.slice(1) : table.rows;
  }

  replace(node, el("span", { class: "check" }, header, el("label", { for: headerId }, "The first row names the columns")), choices, preview);
  draw();
  return {
    node,
    get names() { return names; },
    body,
    /** The wanted values of a row. */
    pick(row) {
      return Object.fromEntries([...picked].map(([name, place]) => [
        name, Array.isArray(place) ? place.map((one) => row[one] ?? "") : place === null ? "" : row[place] ?? ""]));
    },
    /** What keeps the batch from running; null: nothing. */
    problem() {
      if (body().length === 0) return "there is no row below the names of the columns";
      const lacking = wanted.find((column) => (column.many ? picked.get(column.name).length < 2 : !column.optional && picked.get(column.name) === null));
      if (!lacking) return null;
      return lacking.many ? `tick at least two columns of ${lacking.label.toLowerCase()}` : `say which column is the ${lacking.label.toLowerCase()}`;
    },
  };
}
