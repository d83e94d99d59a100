(() => {
  "use strict";
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const texts = new WeakMap();
  for (const title of document.querySelectorAll("svg title")) {
    texts.set(title.parentNode, title.textContent);
    title.remove();
  }
  const show = (event) => {
    const text = event.target instanceof Element ? texts.get(event.target) : undefined;
    tip.hidden = text === undefined;
    if (tip.hidden) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 6);
    const above = event.clientY - height - 12;
    tip.style.left = `${Math.max(6, left)}px`;
    tip.style.top = `${above > 6 ? above : event.clientY + 20}px`;
  };
  const hide = () => { tip.hidden = true; };
  document.addEventListener("pointermove", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("scroll", hide, { capture: true, passive: true });
  document.addEventListener("keydown", hide);
  document.documentElement.addEventListener("pointerleave", hide);
})();
