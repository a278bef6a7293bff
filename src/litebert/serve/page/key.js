// Asking for an API key. It stays in memory: nothing is stored.

import { el } from "./dom.js";
import { sentence } from "./faults.js";

/** Ask the person for a key; rejects when they close the window without one. */
export function askKey(reason) {
  return new Promise((resolve, reject) => {
    const input = el("input", {
      id: "api-key", type: "password", autocomplete: "off", spellcheck: "false", required: true,
      "aria-describedby": "api-key-why",
    });
    const send = () => {
      // A header holds these characters only.
      const key = input.value.trim();
      if (!/^[\x21-\x7e]+$/.test(key)) {
        why.textContent = "A key has letters, digits and signs, and no spaces.";
        input.focus();
        return;
      }
      dialog.close();
      resolve(key);
    };
    const why = el("p", { id: "api-key-why" }, sentence(reason));
    const dialog = el(
      "dialog",
      { class: "key", "aria-labelledby": "api-key-title" },
      el("form", { on: { submit: (event) => { event.preventDefault(); send(); } } },
        el("h2", { id: "api-key-title" }, "API key"),
        why,
        el("label", { for: "api-key" }, "Key"),
        input,
        el("p", { class: "hint" }, "It is kept until you leave the page, and stored nowhere."),
        el("div", { class: "actions" },
          el("button", { type: "submit", class: "main" }, "Use this key"),
          el("button", { type: "button", class: "quiet", on: { click: () => dialog.close() } }, "Cancel"))),
    );
    dialog.addEventListener("close", () => {
      dialog.remove();
      reject(new Error("without an API key this server answers nothing")); // after resolve: of no effect
    });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}
