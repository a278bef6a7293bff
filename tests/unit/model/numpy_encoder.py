"""The encoder with every option, written out in NumPy from the formulas: one sequence, one head at a time."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch


def erf(values):
    return torch.erf(torch.from_numpy(values)).numpy()


def gelu_new(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ACT = {
    "gelu": lambda x: 0.5 * x * (1 + erf(x / math.sqrt(2))),
    "gelu_new": gelu_new,
    "relu": lambda x: np.maximum(x, 0),
}


def softmax(row):
    powers = np.exp(row - row.max())
    return powers / powers.sum()


def bucket(difference, distance, buckets):
    """Row on its side, by the definition of the logarithmic buckets; scalar."""
    if buckets is None:
        return difference
    middle = buckets // 2
    if abs(difference) <= middle:
        return difference
    far = math.log(abs(difference) / middle) / math.log((distance - 1) / middle)
    return int(math.copysign(middle + math.ceil(round(far * (middle - 1), 9)), difference))


def row(difference, options):
    side = options.relative_buckets or options.relative_distance
    value = bucket(int(difference), options.relative_distance, options.relative_buckets) + side
    return min(max(value, 0), 2 * side - 1)


def turn(vector, position, base):
    """Rotate pairs (c, c + D/2) by position * base ** (-2 c / D)."""
    size = len(vector)
    result = vector.copy()
    for c in range(size // 2):
        angle = position * base ** (-2 * c / size)
        a, b = vector[c], vector[c + size // 2]
        result[c] = a * math.cos(angle) - b * math.sin(angle)
        result[c + size // 2] = b * math.cos(angle) + a * math.sin(angle)
    return result


class NumpyEncoder:
    """Weights by name of the state dict, float64."""

    def __init__(self, config, weights):
        self.config, self.options, self.weights = config, config.litebert, weights

    def __getitem__(self, name):
        return self.weights[name]

    def norm(self, name, x, change=None):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        scaled = (x - mean) / np.sqrt(variance + self.config.layer_norm_eps)
        more, shift = (self.weights.get(f"{change}.{part}", 0.0) for part in ("weight", "bias"))
        return scaled * (self[f"{name}.weight"] + more) + self[f"{name}.bias"] + shift

    def bottleneck(self, name, x):
        """`x + up(act(down(x)))`, where there is one."""
        if f"{name}.down" not in self.weights:
            return x
        inner = ACT[self.config.hidden_act](x @ self[f"{name}.down"].T + self[f"{name}.down_bias"])
        return x + inner @ self[f"{name}.up"].T + self[f"{name}.up_bias"]

    def linear(self, name, x, step=None):
        result = x @ self[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0.0)
        low = f"encoder.adapters.{step}.{name.split('.')[-1]}"
        if f"{low}.a" in self.weights:
            scale = (self.options.lora_alpha or self.options.lora_rank) / self.options.lora_rank
            result = result + (x @ self[f"{low}.a"].T) @ self[f"{low}.b"].T * scale
        return result

    def embed(self, ids, types, positions):
        x = self["embeddings.token.weight"][ids] + self["embeddings.token_type.weight"][types]
        if "absolute" in self.options.positions:
            x = x + self["embeddings.position.weight"][positions]
        x = self.norm("embeddings.norm", x)
        if "embeddings.project.weight" in self.weights:
            x = self.linear("embeddings.project", x)
        return x

    def attention(self, index, x, positions, depth, step):
        config, options = self.config, self.options
        name = f"encoder.attentions.{index}"
        heads, narrow = config.num_attention_heads, config.num_key_value_heads
        size, n = config.hidden_size // heads, len(x)
        q, k, v = (self.linear(f"{name}.{p}", x, step) for p in ("query", "key", "value"))
        disentangled = "disentangled" in options.positions
        terms = options.relative_terms.split("+") if disentangled else []
        if disentangled:
            table = self["encoder.relative.table.weight"]
            if options.relative_form == "v2":
                table = self.norm("encoder.relative.norm", table)
                kr, qr = self.linear(f"{name}.key", table), self.linear(f"{name}.query", table)
            else:
                kr = self.linear(f"{name}.relative_key", table) if "c2p" in terms else None
                qr = self.linear(f"{name}.relative_query", table) if "p2c" in terms else None
        window = options.local_window
        is_global = window is None or (
            options.global_every > 0 and depth % options.global_every == 0
        )
        context, probabilities = np.zeros((n, heads * size)), np.zeros((heads, n, n))
        for head in range(heads):
            mine = slice(head * size, (head + 1) * size)
            group = head * narrow // heads
            theirs = slice(group * size, (group + 1) * size)
            queries, keys = q[:, mine].copy(), k[:, theirs].copy()
            if "rotary" in options.positions:
                for i in range(n):
                    queries[i] = turn(queries[i], positions[i], options.rotary_base)
                    keys[i] = turn(keys[i], positions[i], options.rotary_base)
            for i in range(n):
                seen = [j for j in range(n) if is_global or abs(i - j) <= window // 2]
                scores = []
                for j in seen:
                    score = queries[i] @ keys[j]
                    d = row(positions[i] - positions[j], options) if disentangled else None
                    if "c2p" in terms:
                        score += queries[i] @ kr[d, theirs]
                    if "p2c" in terms:
                        score += keys[j] @ qr[d, mine]
                    scores.append(score / math.sqrt(size * (1 + len(terms))))
                shares = softmax(np.array(scores))
                probabilities[head, i, seen] = shares
                context[i, mine] = shares @ v[seen][:, theirs]
        return self.linear(f"{name}.output", context, step), probabilities

    def ffn(self, index, x, step):
        name, act = f"encoder.ffns.{index}", ACT[self.config.hidden_act]
        up = self.linear(f"{name}.up", x, step)
        inner = act(self.linear(f"{name}.gate", x, step)) * up if self.gated else act(up)
        return self.linear(f"{name}.down", inner, step)

    @property
    def gated(self):
        return self.options.ffn == "geglu"

    def run(self, ids, types, positions):
        """Hidden states [n, H] and probabilities of each step, of one sequence."""
        x = self.embed(ids, types, positions)
        inner, found = self.config.inner_group_num, []
        for number, step in enumerate(self.config.plan):
            depth = number // inner
            if number % inner == 0 and self.options.depth_embeddings:
                x = x + self["encoder.depths.weight"][depth]
            own = f"encoder.adapters.{number}"
            one, two = (
                partial(self.norm, f"encoder.{kind}.norm", change=f"{own}.{place}_norm")
                for kind, place in (
                    (f"attentions.{step.attention}", "attention"), (f"ffns.{step.ffn}", "ffn")
                )
            )  # fmt: skip
            is_pre = self.options.norm_position == "pre"
            entering = one(x) if is_pre else x
            update, shares = self.attention(step.attention, entering, positions, depth, number)
            x = x + self.bottleneck(f"{own}.attention_bottleneck", update)
            x = x if is_pre else one(x)
            update = self.ffn(step.ffn, two(x) if is_pre else x, number)
            x = x + self.bottleneck(f"{own}.ffn_bottleneck", update)
            x = x if is_pre else two(x)
            found.append(shares)
        if self.options.norm_position == "pre":
            x = self.norm("encoder.final_norm", x)
        return x, found
