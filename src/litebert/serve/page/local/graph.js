// The packed graph: sequences in, named outputs for each of them out. Interface: the page "Exported folder"
// of the documentation; inputs with a default are always given here.

import { packRows } from "./packing.js";

const SENTENCES = new Set(["sequence", "choice", "sentence_order"]);

/** A loaded graph. */
export class Graph {
  /** `ort` is the runtime, `bytes` the file, `facts` the manifest's `graph`. */
  static async open(ort, bytes, facts) {
    const session = await ort.InferenceSession.create(bytes, {
      executionProviders: ["wasm"],
      // The export did what pays. To look for more takes longer than all the rest of opening the page,
      // and makes an answer a sixth quicker.
      graphOptimizationLevel: "disabled",
    });
    return new Graph(ort, session, facts);
  }

  constructor(ort, session, facts) {
    Object.assign(this, { ort, session, facts });
    this.head = facts.head;
    this.depths = facts.depth;
    this.width = facts.hidden_size;
    this.inputs = new Set(session.inputNames);
    this.outputs = new Set(session.outputNames);
    this.hasStages = ["depth", "start_depth", "hidden_in"].every((name) => this.inputs.has(name));
    this.stateName = this.outputs.has("hidden_out") ? "hidden_out" : "last_hidden_state";
  }

  /**
   * Compute outputs of one call.
   * `call` is of `packRows`, `sequences` are `{ids, types}`. Options: `depth`; `masks`, flat slots whose
   * words are predicted; `start`, `[depths that were run, their states]`.
   */
  async run(call, sequences, names, { depth = null, masks = [], start = null } = {}) {
    const size = call.height * call.width;
    const grid = { input_ids: [], token_type_ids: [], position_ids: [], sequence_ids: [] };
    for (const name of Object.keys(grid)) grid[name] = new BigInt64Array(size);
    const numbers = new Array(call.height).fill(0);
    const firsts = [];
    call.members.forEach((member, place) => {
      const row = call.rows[place];
      const first = row * call.width + call.starts[place];
      const { ids, types } = sequences[member];
      numbers[row] += 1;
      firsts.push(first);
      for (let i = 0; i < ids.length; i += 1) {
        grid.input_ids[first + i] = BigInt(ids[i]);
        grid.token_type_ids[first + i] = BigInt(types[i]);
        grid.position_ids[first + i] = BigInt(i);
        grid.sequence_ids[first + i] = BigInt(numbers[row]);
      }
    });
    const feeds = {};
    const give = (name, type, data, shape) => {
      if (this.inputs.has(name)) feeds[name] = new this.ort.Tensor(type, data, shape);
    };
    for (const [name, data] of Object.entries(grid)) give(name, "int64", data, [call.height, call.width]);
    give("first_positions", "int64", BigInt64Array.from(firsts, BigInt), [firsts.length]);
    give("masked_positions", "int64", BigInt64Array.from(masks, BigInt), [masks.length]);
    give("depth", "int64", BigInt64Array.of(BigInt(depth ?? this.depths)), []);
    give("start_depth", "int64", BigInt64Array.of(BigInt(start?.[0] ?? 0)), []);
    const state = start?.[1] ?? new Float32Array(this.width);
    give("hidden_in", "float32", state, start ? [call.height, call.width, this.width] : [1, 1, this.width]);
    give("exit_threshold", "float32", Float32Array.of(2), []);
    give("exit_temperature", "float32", Float32Array.of(1), []);
    const found = await this.session.run(feeds, names);
    const results = names.map((name) => ({ data: found[name].data, dims: found[name].dims }));
    return results;
  }

  /**
   * Return what the head gives for each sequence: rows of numbers, one row for heads that answer for a
   * sequence, one for each token otherwise.
   */
  async answers(sequences, depth) {
    const names = this.outputs.has("start_logits")
      ? ["start_logits", "end_logits"]
      : [["logits", "sentence_embedding"].find((name) => this.outputs.has(name))];
    const answers = new Array(sequences.length);
    for (const call of packRows(sequences.map(({ ids }) => ids.length))) {
      const outputs = await this.run(call, sequences, names, { depth });
      const isSentence = SENTENCES.has(this.head) || names[0] === "sentence_embedding";
      call.members.forEach((member, place) => {
        const first = isSentence ? place : call.rows[place] * call.width + call.starts[place];
        const count = isSentence ? 1 : call.lengths[place];
        answers[member] = Array.from({ length: count }, (_, i) => rowOf(outputs, first + i));
      });
    }
    return answers;
  }

  /** Return one vector for each sequence: the mean over its tokens, or the first token's state. */
  async vectors(sequences, depth, pooling = "mean") {
    const vectors = new Array(sequences.length);
    for (const call of packRows(sequences.map(({ ids }) => ids.length))) {
      const [{ data }] = await this.run(call, sequences, ["last_hidden_state"], { depth });
      call.members.forEach((member, place) => {
        const first = call.rows[place] * call.width + call.starts[place];
        const count = pooling === "cls" ? 1 : call.lengths[place];
        const sums = new Float64Array(this.width);
        for (let token = first; token < first + count; token += 1) {
          for (let i = 0; i < this.width; i += 1) sums[i] += data[token * this.width + i];
        }
        vectors[member] = Array.from(sums, (sum) => sum / count);
      });
    }
    return vectors;
  }
}

/** One row of an output; of several outputs with one number each, these numbers. */
function rowOf(outputs, row) {
  if (outputs.length > 1) return outputs.map(({ data }) => data[row]);
  const [{ data, dims }] = outputs;
  const width = dims[dims.length - 1];
  return Array.from(data.subarray(row * width, (row + 1) * width));
}
