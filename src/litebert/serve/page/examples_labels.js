// Six inputs for classifiers, chosen by what their labels say that they do.

const REVIEWS = [
  "The kettle boils fast and has not leaked once in a year.",
  "It came broken, and nobody answered my three letters.",
  "Not bad for the price, but I would not buy it again.",
  "I laughed from the first scene to the last.",
  "Two hours of my life that I will not get back.",
  "The room was clean, the breakfast was cold, the staff were lovely.",
];
const NEWS = [
  "The central bank raised its rate by a quarter point to slow inflation.",
  "The striker scored twice in the last ten minutes of the cup final.",
  "Engineers unveiled a chip that needs half the power of its predecessor.",
  "Ministers of eleven countries met to discuss the ceasefire.",
  "The airline will buy forty aircraft and cut five hundred jobs.",
  "A probe sent back the first close pictures of the comet.",
];
const QUESTIONS = [
  "Who painted the ceiling of the chapel?",
  "How many bones does a horse have?",
  "Where is the longest bridge of the world?",
  "What does the abbreviation NATO stand for?",
  "What is a kilt?",
  "Which animal sleeps while standing?",
];
const COMMANDS = [
  "play the latest album by nina simone",
  "book a table for four at an italian place tonight",
  "will it rain in oslo this weekend",
  "add this tune to my running playlist",
  "give this novel four out of five stars",
  "find the screening times of the new film at the odeon",
];
const PLAIN = [
  "The parcel arrived two days late.",
  "Thank you very much for your quick help!",
  "The train to the coast leaves at half past six.",
  "Please send me an invoice for last month.",
  "The soup was cold and the bread was old.",
  "Could you tell me how to change my address?",
];
const ENTAILMENT = [
  ["A woman plays the cello on a bridge.", "Somebody makes music."],
  ["A woman plays the cello on a bridge.", "The bridge is empty."],
  ["Two boys kick a ball across the street.", "The boys are brothers."],
  ["The shop closes at six.", "The shop is open at seven."],
  ["All the glasses were broken.", "Some glasses were broken."],
  ["Nobody called after noon.", "The phone rang at three."],
];
const ALIKE = [
  ["The company bought its rival for two billion.", "For two billion, the rival was taken over by the company."],
  ["How do I learn to swim?", "What is the best way to learn swimming?"],
  ["How do I learn to swim?", "How do I learn to sing?"],
  ["The dog bit the man.", "The man bit the dog."],
  ["It rained all day.", "The whole day was wet."],
  ["The concert was sold out.", "There were no tickets left for the concert."],
];
const BY_LABELS = [
  [/^(world|sports?|business|sci|tech|politics)/, NEWS],
  [/^(abbr|desc|hum|loc|num)/, QUESTIONS],
  [/(playlist|weather|restaurant|playmusic|book)/, COMMANDS],
  [/(pos|neg|good|bad|star|joy|anger|sentiment)/, REVIEWS],
];

/** Return six examples as `{title, values}`. */
export function examplesOfLabels(info) {
  const labels = info.labels.map((label) => label.toLowerCase());
  if (info.is_pair) {
    const isEntailment = labels.some((label) => /entail|contradict|neutral/.test(label));
    return (isEntailment ? ENTAILMENT : ALIKE).map(([text, second]) => ({ title: `${text} | ${second}`, values: { text, second } }));
  }
  const [, texts] = BY_LABELS.find(([pattern]) => labels.some((label) => pattern.test(label))) ?? [null, PLAIN];
  return texts.map((text) => ({ title: text, values: { text } }));
}
