// node tokenize.mjs FOLDER QUESTIONS ANSWERS: what the page's tokenizer gives for each text.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, questions, answers] = process.argv.slice(2);
const from = (name) => import(new URL(name, pathToFileURL(`${folder}/`)));
const { Tokenizer } = await from("tokenizer.js");
const { wordSplitter } = await from("words.js");
const { data, texts, maxLength } = JSON.parse(readFileSync(questions, "utf-8"));
const tokenizer = new Tokenizer(data);
const split = data.words ? wordSplitter(data.words) : null;
const found = texts.map((text, number) => {
  const { ids, spans } = tokenizer.encode(text);
  const pair = texts[(number + 1) % texts.length];
  const cut = tokenizer.encode(text, pair, maxLength, number % 2 ? "tail" : "head");
  const { types, truncated } = cut;
  return { ids, spans: spans(), words: split?.(text), cut: [cut.ids, cut.spans(), types, truncated] };
});
writeFileSync(answers, JSON.stringify(found));
