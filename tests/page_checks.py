"""Scripts that look at a page as a reader of screens, a person with weak eyes or a narrow phone would."""

# ruff: noqa: E501 - JavaScript
from __future__ import annotations

from typing import Final

CONTRASTS: Final = r"""
(() => {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (color) => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = color; pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, low) => [0, 1, 2].map((i) => top[i] * top[3] + low[i] * (1 - top[3])).concat(1);
  const light = (color) => {
    const [r, g, b] = color.slice(0, 3).map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    const chain = [];
    for (let at = node; at; at = at.parentElement) chain.push(rgba(getComputedStyle(at).backgroundColor));
    return chain.reverse().reduce((low, top) => over(top, low), [255, 255, 255, 1]);
  };
  const found = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    if (!texts.currentNode.data.trim() || !node.checkVisibility({visibilityProperty: true}) || node.closest(".unseen, .skip, :disabled, noscript")) continue;
    const style = getComputedStyle(node);
    const low = ground(node);
    const ink = node.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(over(rgba(ink), low)), light(low)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) found.push(`${ratio.toFixed(2)} ${node.tagName}.${node.getAttribute("class")}: ${texts.currentNode.data.trim().slice(0, 40)}`);
  }
  return found;
})()
"""
"""Texts whose contrast is below that of WCAG AA."""

NAMELESS: Final = r"""
(() => {
  const found = [];
  for (const node of document.querySelectorAll("button, a, input, select, textarea, progress, [role=img], [role=region], [role=tabpanel], section[aria-label]")) {
    if (!node.checkVisibility()) continue;
    const named = node.getAttribute("aria-label") || (node.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "").join("")
      || [...(node.labels ?? [])].map((label) => label.textContent).join("") || node.textContent.trim();
    if (!named.trim() || (node.labels?.length === 0 && /INPUT|SELECT|TEXTAREA/.test(node.tagName) && !node.getAttribute("aria-label"))) found.push(node.outerHTML.slice(0, 120));
  }
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  found.push(...ids.filter((id, place) => ids.indexOf(id) !== place).map((id) => `twice: ${id}`));
  for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "for"]) {
    for (const node of document.querySelectorAll(`[${name}]`)) {
      for (const id of node.getAttribute(name).split(" ")) if (!document.getElementById(id)) found.push(`${name} of nothing: ${id}`);
    }
  }
  return found;
})()
"""
"""Controls without a name, names twice, references to nothing."""

WIDER: Final = r"""
(() => {
  const wide = document.documentElement.clientWidth;
  const found = document.documentElement.scrollWidth > wide ? [`the page: ${document.documentElement.scrollWidth}`] : [];
  for (const node of document.querySelectorAll("button, a.button, select, input:not(.unseen), textarea, summary")) {
    if (!node.checkVisibility() || node.closest(".wide, .skip")) continue;
    const box = node.getBoundingClientRect();
    if (box.height < 24) found.push(`${Math.round(box.width)} x ${Math.round(box.height)}: ${node.outerHTML.slice(0, 90)}`);
  }
  return found;
})()
"""
"""Whether anything is wider than the window, or too small to be hit."""
