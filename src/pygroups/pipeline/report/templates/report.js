// The words of a shape (its <title>) appear at the pointer at once, in place of the browser's slow tip. Without this
// script nothing is missing: the titles stay, and every figure has its numbers in a table.
"use strict";
const tip = document.createElement("div");
tip.className = "tip";
tip.hidden = true;
tip.setAttribute("aria-hidden", "true");
document.body.append(tip);

function wordsAt(target) {
  const shape = target instanceof Element ? target.closest(".figure g[data-words], .figure g:has(> title)") : null;
  if (!shape) return null;
  const title = shape.querySelector(":scope > title");
  if (title) {
    shape.dataset.words = title.textContent;
    shape.setAttribute("aria-label", title.textContent);
    title.remove();
  }
  return shape.dataset.words;
}

document.addEventListener("pointermove", (event) => {
  const words = wordsAt(event.target);
  tip.hidden = !words;
  if (!words) return;
  tip.textContent = words;
  const left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18;
  const top = below + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 12 : below;
  tip.style.left = `${Math.max(8, left)}px`;
  tip.style.top = `${top}px`;
});
document.addEventListener("pointerleave", () => { tip.hidden = true; });
document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
