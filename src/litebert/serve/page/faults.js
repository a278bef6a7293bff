// What went wrong, as a sentence.

import { el } from "./dom.js";

/** Something that the person can put right, said before anything is sent. */
export class Missing extends Error {}

/** The sentence of a fault: a capital, a full stop, nothing of the inside. */
export function sentence(fault) {
  const told = String(fault?.message ?? fault ?? "").trim() || "something went wrong";
  const text = told.charAt(0).toUpperCase() + told.slice(1);
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

/** Whether a request ended because nobody wanted it any more. */
export function isAbort(fault) {
  return fault?.name === "AbortError";
}

/** A box with the sentence, and a button where trying again may help. */
export function faultBox(fault, again) {
  return el(
    "div",
    { class: "fault", role: "alert" },
    el("p", {}, sentence(fault)),
    again && el("button", { type: "button", class: "quiet", on: { click: again } }, "Try again"),
  );
}
