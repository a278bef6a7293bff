// Six inputs for each view.

const titled = (texts) => texts.map((text) => ({ title: text, values: { text } }));

export const TAG_EXAMPLES = titled([
  "Ada Lovelace was born in London and wrote to Charles Babbage in Cambridge.",
  "The ferry from Helsinki to Tallinn was built by Meyer Turku for Viking Line.",
  "On Tuesday the Bank of Canada met in Ottawa with the governor of Ontario.",
  "Maria Sklodowska left Warsaw for Paris, where she studied at the Sorbonne.",
  "Ajax beat Porto 2-1 in Amsterdam after a late goal by Klaassen.",
  "The United Nations sent observers from Kenya and Norway to Juba.",
]);

export const UTTERANCE_EXAMPLES = titled([
  "show me flights from boston to denver on monday morning",
  "wake me up at six thirty tomorrow",
  "add this song to my running playlist",
  "book a table for four at an italian place in lisbon tonight",
  "will it rain in oslo this weekend",
  "play something by nina simone",
]);

const PASSAGE = "The lighthouse at Cape Norren was built in 1871 after three ships were lost there in one winter. "
  + "Its lamp burned colza oil until 1902, when an engineer named Ida Brandt replaced it with a paraffin burner of her own design. "
  + "The tower is 34 metres high and can be seen from 19 miles away. Since 1988 no keeper lives there any more; "
  + "the light is switched by a sensor, and the old dwelling houses a small museum.";

export const QUESTION_EXAMPLES = [
  "When was the lighthouse built?",
  "Who replaced the lamp?",
  "How high is the tower?",
  "Why was the lighthouse built?",
  "What is in the old dwelling today?",
  "Who was the first keeper?",
].map((question) => ({ title: question, values: { question, context: PASSAGE } }));

export const CHOICE_EXAMPLES = [
  ["", "What do people use to dry their hands after washing them?", "a towel", "a ladder", "a candle", "a violin"],
  ["", "Which of these melts when it is left in the sun?", "an ice cube", "a stone", "a brick", "a coin"],
  ["Mara missed the last bus, and it had begun to snow. She looked at her boots, sighed, and pulled up her collar.",
    "What will Mara most likely do?", "walk home", "go swimming", "water the garden", "wait for the bus"],
  ["", "Where would you look for a book that you want to borrow?", "in a library", "in a bakery", "in a stable", "on a roof"],
  ["Tom: Have you got the tickets? Ana: I thought you had them. Tom: Then we had better go back.",
    "What did they forget?", "the tickets", "the umbrella", "the dog", "the time"],
  ["", "What does a plant need in order to grow?", "light and water", "a blanket", "noise", "salt"],
].map(([context, question, ...choices]) => ({ title: question, values: { context, question, choices: choices.join("\n") } }));

/** `___` stands for the mask of the vocabulary. */
export const MASK_EXAMPLES = [
  "The capital of France is ___.",
  "She poured the ___ into a cup and added sugar.",
  "He opened the window because the room was too ___.",
  "The cat sat on the ___ and looked at the ___.",
  "They walked along the ___ until the sun went down.",
  "A week has seven ___.",
];

/** A title, then the texts. */
export const SIMILARITY_EXAMPLES = [
  ["Kitchen things", "The kettle does not heat the water any more.", "My electric kettle is broken.", "The toaster burns the bread.", "We moored the boat in a quiet harbour.", "The ship stayed in a calm bay overnight."],
  ["Questions of customers", "How do I reset my password?", "I forgot my password.", "Where is my parcel?", "When will my order arrive?", "Can I pay by invoice?"],
  ["Weather", "It rained all day.", "The whole day was wet.", "The sun shone from morning to evening.", "Snow fell during the night.", "The concert was sold out."],
  ["Same words, another meaning", "The dog bit the man.", "The man bit the dog.", "A man was bitten by a dog.", "A dog was bitten by a man."],
  ["Headlines", "Central bank raises rates again", "Interest rates go up once more", "Striker signs for three years", "Club gives its forward a long contract", "New telescope sees its first star"],
  ["Short and long", "Ill.", "I do not feel well today.", "I have had a headache since this morning, and I think that I should stay in bed.", "The train is late.", "My train was cancelled, and the next one leaves in an hour."],
];

export const TOKEN_EXAMPLES = titled([
  "Unbelievably, the lighthouse-keeper's kettle whistled.",
  "naïve café, Å vs. Å, ﬁne ligatures, fullwidth ＡＢＣ",
  "👩‍🚀 launches 🚀 at 10:30 – tickets €12.50!",
  "שלום עולם and مرحبا بالعالم in one line",
  "東京タワーは333メートルです。",
  "def area(r): return 3.14159 * r ** 2  # <b>not markup</b>",
]);
