// The page: opens the model, and shows the views that it has.

import { makeBatchPanel } from "./batch_panel.js";
import { mode, openBackend } from "./backend.js";
import { makeDial } from "./dial.js";
import { el, replace } from "./dom.js";
import { faultBox } from "./faults.js";
import { count } from "./format.js";
import { Session } from "./session.js";
import { makeTabs } from "./tabs.js";
import { makeTaskPanel } from "./task_panel.js";
import { viewsOf } from "./views/index.js";

const part = (id) => document.getElementById(id);

let telling = 0;

/** Have a screen reader say something, once things are quiet. */
function say(text) {
  clearTimeout(telling);
  telling = setTimeout(() => { part("announcer").textContent = text; }, 400);
}

function loading(share, text) {
  const bar = part("loading-bar");
  if (bar === null) return;
  if (Number.isFinite(share)) bar.value = share;
  if (text) part("loading-text").textContent = text;
}

function facts(info) {
  const words = [
    info.task ? info.task.replaceAll("_", " ") : info.head === "mlm" || info.head === "pretraining" ? "masked words" : "encoder",
    info.depths && count(info.depths, "depth"),
    info.model_dtype,
    info.labels?.length > 1 && info.routes.includes("/predict") && count(info.labels.length, "label"),
    info.max_input_length && count(info.max_input_length, "token"),
  ];
  part("facts").textContent = words.filter(Boolean).join(" · ");
}

function chooser(session, info) {
  const names = info.models ?? [];
  if (names.length < 2) {
    replace(part("model"), el("bdi", { class: "model-name" }, info.model_id ?? ""));
    return;
  }
  const select = el("select", { id: "model-choice", on: { change: () => show(session, select.value) } },
    names.map((name) => el("option", { value: name }, name)));
  select.value = info.model_id;
  replace(part("model"), el("label", { for: "model-choice", class: "unseen" }, "Model"), select);
}

function build(session, info) {
  const views = viewsOf(info);
  let tabs = null;
  const dial = (info.depths ?? 1) > 1 ? makeDial(info, () => tabs?.open.panel.onDial()) : null;
  const items = views.map((view) => ({
    id: view.id, title: view.title(info), panel: makeTaskPanel(view, session, dial, say),
  }));
  const many = views.filter((view) => view.batch).sort((a, b) => Number(a.batch.isRare ?? false) - Number(b.batch.isRare ?? false));
  if (many.length > 0) items.push({ id: "batch", title: "Batch", panel: makeBatchPanel(many, session, dial, say) });
  tabs = makeTabs(part("main"), items);
}

async function show(session, model) {
  try {
    const info = await session.open(model);
    chooser(session, info);
    facts(info);
    document.title = info.model_id ? `${info.model_id} · litebert` : "litebert";
    build(session, info);
  } catch (fault) {
    replace(part("main"), faultBox(fault, () => show(session, model)));
  }
}

async function start() {
  part("where").textContent = mode() === "static"
    ? "The model runs in this page. Nothing that you type leaves it."
    : "Texts go to the server that this page came from, and nowhere else. They are not logged.";
  try {
    await show(new Session(await openBackend(loading)), undefined);
  } catch (fault) {
    replace(part("main"), faultBox(fault, start));
  }
}

start();
