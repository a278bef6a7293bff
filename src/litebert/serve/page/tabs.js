// Tabs: arrow keys move between them, the address says which one is open.

import { el, replace } from "./dom.js";

/** Put tabs and their panels into `place`; an item has `id`, `title` and `panel`. Returns the open one's getter. */
export function makeTabs(place, items) {
  const asked = location.hash.slice(1);
  let open = items.find((item) => item.id === asked) ?? items[0];
  const tabs = items.map((item) => el("button", {
    type: "button", role: "tab", id: `tab-${item.id}`, "aria-controls": `panel-${item.id}`,
    on: { click: () => show(item), keydown: (event) => onKey(event, item) },
  }, item.title));
  const panels = items.map((item) => el("div", { id: `panel-${item.id}`, role: "tabpanel", "aria-labelledby": `tab-${item.id}` }, item.panel.node));

  function show(item, focus = false) {
    if (item !== open) open.panel.leave();
    open = item;
    items.forEach((other, index) => {
      const isOpen = other === item;
      tabs[index].setAttribute("aria-selected", String(isOpen));
      tabs[index].tabIndex = isOpen ? 0 : -1;
      panels[index].hidden = !isOpen;
      if (isOpen && focus) tabs[index].focus();
    });
    history.replaceState(null, "", `#${item.id}`);
    item.panel.activate();
  }

  function onKey(event, item) {
    const at = items.indexOf(item);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: items.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(items[(to + items.length) % items.length], true);
  }

  replace(place, items.length > 1 && el("div", { class: "tabs", role: "tablist", "aria-label": "What to do" }, tabs), panels);
  show(open);
  return { get open() { return open; } };
}
