// The inputs of a view, from its list of fields.

import { wellFormed } from "./codepoints.js";
import { el, freshId } from "./dom.js";

/**
 * Return `{node, values(), fill(values), focus(), insert(name, text)}`.
 * A field has `name`, `label`, `rows` (lines shown), and maybe `hint` and `placeholder`.
 * `onInput` is told of every change, `onSend` of Ctrl+Enter.
 */
export function makeForm(fields, { onInput, onSend }) {
  const boxes = new Map();
  const parts = fields.map((field) => {
    const id = freshId(field.name);
    const box = el("textarea", {
      id, rows: field.rows ?? 3, dir: "auto", spellcheck: "false", autocapitalize: "off",
      placeholder: field.placeholder, name: field.name,
      "aria-describedby": field.hint ? `${id}-hint` : null,
      on: {
        input: () => onInput(),
        keydown: (event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            onSend();
          }
        },
      },
    });
    boxes.set(field.name, box);
    return el("div", { class: "field" },
      el("label", { for: id }, field.label),
      box,
      field.hint && el("p", { class: "hint", id: `${id}-hint` }, field.hint));
  });
  return {
    node: el("div", { class: "fields" }, parts),
    values() {
      return Object.fromEntries([...boxes].map(([name, box]) => [name, wellFormed(box.value)]));
    },
    fill(values) {
      for (const [name, box] of boxes) box.value = values[name] ?? "";
    },
    focus() {
      boxes.values().next().value?.focus();
    },
    insert(name, text) {
      const box = boxes.get(name);
      box.setRangeText(text, box.selectionStart, box.selectionEnd, "end");
      box.focus();
      onInput();
    },
  };
}

/** The lines of a field that have something in them. */
export function lines(text) {
  return text.split(/\r\n|\r|\n/).map((line) => line.trim()).filter((line) => line !== "");
}
