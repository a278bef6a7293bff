// Places in a text: the model counts code points, JavaScript counts UTF-16 units.

/** Return a function from a number of code points to the place in the string. */
export function placesOf(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (point) => Math.max(0, Math.min(text.length, point));
  const places = [];
  let place = 0;
  for (const character of text) {
    places.push(place);
    place += character.length;
  }
  places.push(place);
  return (point) => places[Math.max(0, Math.min(places.length - 1, point))];
}

/** The part of a text between two code points. */
export function cut(text, start, end) {
  const place = placesOf(text);
  return text.slice(place(start), place(end));
}

/** A text in which every half of a character is replaced: JSON and the model know whole ones only. */
export function wellFormed(text) {
  return text.replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd");
}
