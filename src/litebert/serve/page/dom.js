// Elements. Text only ever becomes text: strings are appended as text nodes, never parsed.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Make an element.
 * `on` holds listeners, `css` custom properties, `data` the data attributes; the rest are attributes:
 * true stands for an empty one, false and null for none.
 */
export function el(name, properties = {}, ...children) {
  return filled(document.createElement(name), properties, children);
}

/** Make an element of SVG. */
export function svg(name, properties = {}, ...children) {
  return filled(document.createElementNS(SVG, name), properties, children);
}

/** Put children in place of those that are there. */
export function replace(node, ...children) {
  node.replaceChildren(...kept(children));
  return node;
}

function filled(node, properties, children) {
  for (const [key, value] of Object.entries(properties)) {
    if (key === "on") {
      for (const [kind, listener] of Object.entries(value)) node.addEventListener(kind, listener);
    } else if (key === "css") {
      for (const [variable, content] of Object.entries(value)) node.style.setProperty(variable, content);
    } else if (key === "data") {
      Object.assign(node.dataset, value);
    } else if (key === "value") {
      node.value = value;
    } else if (value !== false && value !== null && value !== undefined) {
      node.setAttribute(key, value === true ? "" : String(value));
    }
  }
  node.append(...kept(children));
  return node;
}

function kept(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
}

let last = 0;

/** A name that no other element of the page has. */
export function freshId(stem) {
  last += 1;
  return `${stem}-${last}`;
}
