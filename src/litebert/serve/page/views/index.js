// The views that a model has, from the routes that it answers.

import { choose } from "./choose.js";
import { classify } from "./classify.js";
import { mask } from "./mask.js";
import { question } from "./question.js";
import { similarity } from "./similarity.js";
import { tag } from "./tag.js";
import { tokens } from "./tokens.js";

const VIEWS = [classify, tag, question, choose, similarity, mask, tokens];

/**
 * Views whose route the model answers, the main one first; vectors only where the model was not
 * trained for something else.
 */
export function viewsOf(info) {
  const found = VIEWS.filter((view) => info.routes.includes(view.route));
  const has = (view) => found.includes(view);
  const isTrained = has(classify) || has(tag) || has(question) || has(choose);
  const kept = found.filter((view) => view !== similarity || !isTrained || info.head === "embedding");
  const isPretrained = !info.task && has(mask);
  return isPretrained ? [mask, ...kept.filter((view) => view !== mask)] : kept;
}
