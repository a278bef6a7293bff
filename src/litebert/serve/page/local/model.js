// A model beside the page: its graph, its tokenizer, and what it was trained for.

import { Classifier } from "./classify.js";
import { Chooser } from "./choice.js";
import { Fault } from "./faults.js";
import { Graph } from "./graph.js";
import { Tagger } from "./ner.js";
import { Reader } from "./spans.js";
import { ROUTES } from "./routes.js";
import { Tokenizer } from "./tokenizer.js";

/** Answers requests. */
export class Model {
  /** `files` are the bytes of the graph and the values of the tokenizer; `ort` is the runtime. */
  static async open(ort, manifest, { graph, tokenizer }) {
    return new Model(manifest, await Graph.open(ort, graph, manifest.graph), new Tokenizer(tokenizer));
  }

  constructor(manifest, graph, tokenizer) {
    Object.assign(this, { manifest, graph, tokenizer });
    const task = manifest.task ?? null;
    this.settings = manifest.settings ?? {};
    this.routes = manifest.info.routes;
    this.maxPositions = manifest.graph.max_positions;
    this.taskName = task === null ? "nothing but embeddings" : `the task '${task.task}'`;
    this.classifier = /classification$/.test(task?.task ?? "") ? new Classifier(task) : null;
    this.reader = ["squad", "squad_v2"].includes(task?.task) ? new Reader(task, tokenizer) : null;
    this.tagger = ["tagging", "intent_slots"].includes(task?.task) ? new Tagger(task, tokenizer) : null;
    this.chooser = task?.task === "choice" ? new Chooser(task, tokenizer) : null;
  }

  /** The answer of a route. */
  async answer(route, body) {
    const answer = Object.hasOwn(ROUTES, route) ? ROUTES[route] : null;
    if (!answer) throw new Fault(`there is no route ${String(route).slice(0, 60)} here; there are: ${this.routes.join(", ")}`, 404);
    return answer(this, body);
  }
}
