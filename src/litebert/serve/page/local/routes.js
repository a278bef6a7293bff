// What each route answers; bodies and answers are those of `litebert serve`.

import * as bodies from "./bodies.js";
import { gathered } from "./classify.js";
import { answersWithExits, parseExit } from "./exits.js";
import { Fault, requireFinite } from "./faults.js";
import { order, softmax, unit } from "./numbers.js";
import { packRows } from "./packing.js";

const WORD_OUTPUTS = { mlm: "logits", pretraining: "prediction_logits" };

/** Route -> what answers it from the model and the body. */
export const ROUTES = {
  "/predict": predict,
  "/embed": embed,
  "/similarity": similarity,
  "/rerank": rerank,
  "/tokenize": tokenize,
  "/v1/qa": answerQuestions,
  "/v1/ner": tag,
  "/v1/choice": choose,
  "/v1/fill-mask": fillMasks,
};

/** Depth and exit rule of a request; null: all depths, no exits. */
function chosen(model, body) {
  const { graph, classifier, settings } = model;
  let depth = bodies.count(body.depth, "depth", settings.depth ?? null);
  if (depth !== null && depth > graph.depths) throw new Fault(`depth is ${depth}; allowed: 1 to ${graph.depths}`);
  const told = body.exit ?? settings.exit ?? null;
  if (told === null) return { depth, rule: null };
  if (!classifier) {
    throw new Fault(
      `exits are for answers to one text or pair, not for ${model.taskName}; for a fixed number of depths give depth`,
    );
  }
  if (bodies.text(told, "exit").trim() !== "auto") return { depth, rule: parseExit(told) };
  const { exits } = model.manifest;
  if (!exits) throw new Fault("exit auto: no rule was chosen for this model; name one, for example confidence=0.9");
  depth = Math.min(depth ?? exits.depth, exits.depth);
  return { depth, rule: exits.rule ? parseExit(exits.rule) : null };
}

/** Sequences of texts or pairs that are cut to what the model reads. */
function encode(model, items, body, maxLength = model.maxPositions) {
  const keep = bodies.kept(body.truncation_direction);
  const found = items.map(([first, second]) => model.tokenizer.encode(first, second, maxLength, keep));
  if (!bodies.flag(body.truncate, "truncate", true)) refuseCut(found, maxLength);
  return found;
}

function refuseCut(sequences, maxLength) {
  sequences.forEach(({ ids, truncated }, number) => {
    if (!truncated) return;
    throw new Fault(
      `input ${number} has ${ids.length + truncated} tokens or more, at most ${maxLength} are allowed; shorten it, ` +
        'or send "truncate": true',
    );
  });
}

/** Logits of texts or pairs, from all windows of each. */
async function logitsOf(model, items, body) {
  const { classifier, graph, tokenizer } = model;
  if (!bodies.flag(body.truncate, "truncate", true) && !classifier.task.stride) {
    const whole = items.map(([a, b]) => tokenizer.encode(a, b, classifier.maxLength));
    refuseCut(whole, classifier.maxLength);
  }
  const { depth, rule } = chosen(model, body);
  const windows = items.map(([first, second]) => classifier.windows(tokenizer, first, second));
  const all = windows.flat();
  let outputs;
  if (rule) outputs = await answersWithExits(graph, classifier, all, rule, depth);
  else if (classifier.task.weights && !graph.outputs.has("sentence_embedding")) {
    outputs = (await graph.vectors(all, depth)).map((vector) => [vector]);
  } else outputs = await graph.answers(all, depth);
  let next = 0;
  return windows.map((own) => {
    const rows = own.map(() => outputs[next++][0]);
    return classifier.logits(gathered(rows));
  });
}

async function predict(model, body) {
  bodies.known(body, ["inputs", "raw_scores", "top_k", "truncate", "truncation_direction"]);
  const { classifier } = model;
  if (!classifier) throw new Fault(`the model was trained for ${model.taskName} and has no labels for texts`);
  const { items, isSingle } = bodies.pairs(body.inputs, classifier.isPair);
  const top = bodies.count(body.top_k, "top_k", Infinity);
  const isRaw = bodies.flag(body.raw_scores, "raw_scores", false);
  const logits = await logitsOf(model, items, body);
  const rows = logits.map((row) => (isRaw ? classifier.raw(row) : classifier.scores(row)).slice(0, top));
  return isSingle ? rows[0] : rows;
}

async function vectorsOf(model, texts, body, cutting) {
  const sequences = encode(model, texts.map((text) => [text, null]), cutting);
  const vectors = await model.graph.vectors(sequences, chosen(model, body).depth, model.settings.pooling);
  requireFinite(vectors);
  return vectors;
}

async function embed(model, body) {
  bodies.known(body, ["inputs", "normalize", "dimensions", "prompt_name", "truncate", "truncation_direction"]);
  const { items } = bodies.inputs(body.inputs);
  const size = bodies.count(body.dimensions, "dimensions", model.graph.width);
  if (size > model.graph.width) throw new Fault(`dimensions is ${size}; vectors have ${model.graph.width} numbers`);
  const scale = bodies.flag(body.normalize, "normalize", true) ? unit : (vector) => vector;
  const vectors = await vectorsOf(model, items, body, body);
  return vectors.map((vector) => scale(vector.slice(0, size)).map(Math.fround));
}

async function cosines(model, first, others, body, cutting) {
  const [one, ...rest] = (await vectorsOf(model, [first, ...others], body, cutting)).map(unit);
  return rest.map((vector) => vector.reduce((sum, value, i) => sum + value * one[i], 0));
}

async function similarity(model, body) {
  bodies.known(body, ["inputs", "parameters"]);
  const { source_sentence: source, sentences } = bodies.known(body.inputs, ["source_sentence", "sentences"]);
  const others = bodies.texts(sentences, "inputs.sentences");
  if (!others.length) throw new Fault("inputs.sentences: must have at least one text");
  const told = bodies.known(body.parameters ?? {}, ["truncate", "truncation_direction", "prompt_name"]);
  return cosines(model, bodies.text(source, "inputs.source_sentence"), others, body, told);
}

async function rerank(model, body) {
  bodies.known(body, ["query", "texts", "raw_scores", "return_text", "truncate", "truncation_direction"]);
  const query = bodies.text(body.query, "query");
  const texts = bodies.texts(body.texts, "texts");
  if (!texts.length) throw new Fault("texts: must have at least one text");
  const isRaw = bodies.flag(body.raw_scores, "raw_scores", false);
  const hasText = bodies.flag(body.return_text, "return_text", false);
  if (!model.routes.includes("/rerank")) {
    throw new Fault(`the model was trained for ${model.taskName}, which puts no texts in order`);
  }
  const { classifier } = model;
  const score = (row) => {
    if (isRaw) return row[row.length - 1];
    return classifier.kind === "regression" ? classifier.value(row) : classifier.probabilities(row).at(-1);
  };
  const scores = classifier?.isPair
    ? (await logitsOf(model, texts.map((text) => [query, text]), body)).map(score)
    : await cosines(model, query, texts, body, body);
  return order(scores).map((index) => (
    { index, score: scores[index], ...(hasText ? { text: texts[index] } : {}) }));
}

function tokenize(model, body) {
  bodies.known(body, ["inputs", "add_special_tokens", "prompt_name"]);
  const isWhole = bodies.flag(body.add_special_tokens, "add_special_tokens", true);
  return bodies.inputs(body.inputs).items.map((text) => {
    const { ids, special, spans } = model.tokenizer.encode(text);
    const places = spans();
    return ids.flatMap((id, i) => {
      if (special[i] && !isWhole) return [];
      const [start, stop] = special[i] ? [null, null] : places[i];
      return [{ id, text: model.tokenizer.token(id), special: special[i], start, stop }];
    });
  });
}

/** Answers to records that may have several sequences each. */
async function answerRecords(model, task, items, body, write) {
  const { depth } = chosen(model, body);
  const prepared = items.map((item) => task.prepare(item));
  const outputs = await model.graph.answers(prepared.flatMap(({ windows }) => windows), depth);
  let next = 0;
  return prepared.map((item) => {
    const own = outputs.slice(next, (next += item.windows.length));
    return write(item, own);
  });
}

async function answerQuestions(model, body) {
  bodies.known(body, ["question", "context", "inputs", "top_k"]);
  const task = required(model.reader, model, "answers questions from a passage");
  const { items, isSingle } = bodies.questions(body);
  const top = bodies.count(body.top_k, "top_k", null, 100);
  const found = await answerRecords(model, task, items, body, (item, own) => task.body(item, own, top));
  return isSingle ? found[0] : found;
}

async function tag(model, body) {
  bodies.known(body, ["inputs"]);
  const task = required(model.tagger, model, "tags words");
  const { items, isSingle } = bodies.inputs(body.inputs);
  const found = await answerRecords(model, task, items, body, (item, own) => task.body(item, own));
  return isSingle ? found[0] : found;
}

async function choose(model, body) {
  bodies.known(body, ["question", "context", "choices", "inputs"]);
  const task = required(model.chooser, model, "chooses between answers");
  const { items, isSingle } = bodies.choices(body);
  const found = await answerRecords(model, task, items, body, (item, own) => task.body(item, own));
  return isSingle ? found[0] : found;
}

function required(task, model, does) {
  if (task) return task;
  throw new Fault(`this route needs a model that ${does}; this one was trained for ${model.taskName}`);
}

async function fillMasks(model, body) {
  bodies.known(body, ["inputs", "top_k"]);
  const { graph, tokenizer } = model;
  const text = bodies.text(body.inputs, "inputs");
  const top = bodies.count(body.top_k, "top_k", 5, 1000);
  const name = WORD_OUTPUTS[graph.head];
  if (!name) throw new Fault(`this route needs a model that predicts words; this one was trained for ${model.taskName}`);
  if (!text.includes(tokenizer.maskWord)) throw new Fault(`there is no ${tokenizer.maskWord} in the text`);
  const sequence = tokenizer.encode(text, null, model.maxPositions);
  const masks = sequence.ids.flatMap((id, place) => (id === tokenizer.maskId ? [place] : []));
  if (!masks.length) throw new Fault(`the ${tokenizer.maskWord} stands too far behind the start of the text`);
  const { depth } = chosen(model, body);
  const [call] = packRows([sequence.ids.length], Infinity);
  const [{ data, dims }] = await graph.run(call, [sequence], [name], { depth, masks });
  const width = dims[dims.length - 1];
  const rows = masks.map((_, number) => {
    const row = data.subarray(number * width, number * width + Math.min(width, tokenizer.size));
    requireFinite([row]);
    const found = softmax(row);
    return order(found).slice(0, top).map((id) => {
      const word = tokenizer.token(id).replaceAll("\u2581", " ").trim();
      return { score: found[id], token: id, token_str: word, sequence: filled(text, tokenizer.maskWord, number, word) };
    });
  });
  return rows.length === 1 ? rows[0] : rows;
}

function filled(text, mask, number, word) {
  const parts = text.split(mask);
  return parts.slice(0, number + 1).join(mask) + word + parts.slice(number + 1).join(mask);
}
