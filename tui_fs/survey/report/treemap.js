"use strict";
// Draws the directories of the page as a treemap: the area of a rectangle is what it holds.

(() => {
  // Fields of a node. What a directory holds itself is OWN further than what its subtree holds.
  const BYTES = 2, ENTRIES = 3, OWN = 2, DAYS = 6, OWN_DAYS = 7;
  const MIN_PIXELS = 3, MIN_NESTED = 46, LABEL = 19, LEVELS = 4;
  const AGES = [[7, "within 7 days"], [30, "within 30 days"], [90, "within 90 days"],
    [365, "within a year"], [Infinity, "longer ago"]];
  const nodes = JSON.parse(document.getElementById("tree").textContent);
  const children = nodes.map(() => []);
  nodes.forEach((node, index) => { if (node[0] >= 0) children[node[0]].push(index); });
  const box = document.getElementById("treemap");
  const trail = document.getElementById("trail");
  let field = BYTES, shown = 0;

  const number = new Intl.NumberFormat("en-US");
  const size = (bytes) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = 0;
    for (; bytes >= 1023.95 && unit < units.length - 1; unit++) bytes /= 1024;
    return unit ? `${bytes.toFixed(1)} ${units[unit]}` : `${bytes} B`;
  };
  const amount = (value) => field === BYTES ? size(value) :
    `${number.format(value)} ${value === 1 ? "entry" : "entries"}`;
  const ageOf = (days) => days < 0 ? -1 : AGES.findIndex(([limit]) => days < limit);

  function pathOf(index) {
    const names = [];
    for (; index >= 0; index = nodes[index][0]) names.unshift(nodes[index][1]);
    return names.join("/").replace(/^\/\//, "/");
  }

  // What a directory is divided into: its drawn subdirectories, its files, and the rest together.
  function partsOf(index) {
    const parts = children[index].map((child) => ({ index: child, value: nodes[child][field] }));
    const drawn = parts.reduce((sum, part) => sum + part.value, 0);
    const own = nodes[index][field + OWN];
    const itself = field === ENTRIES ? 1 : 0; // a directory is an entry of its own
    const rest = nodes[index][field] - drawn - own - itself;
    if (own > 0) parts.push({ name: "files here", value: own, days: nodes[index][OWN_DAYS] });
    if (rest > 0) parts.push({ name: "smaller directories", value: rest });
    return parts.filter((part) => part.value > 0).sort((a, b) => b.value - a.value);
  }

  // Squarified treemap (Bruls, Huizing, van Wijk 2000): rows along the shorter side, as long as the
  // worst ratio of sides in a row becomes better.
  function squarify(parts, width, height) {
    const total = parts.reduce((sum, part) => sum + part.value, 0);
    const scale = width * height / total;
    const places = [];
    let x = 0, y = 0, begin = 0;
    while (begin < parts.length) {
      const side = Math.max(1e-9, Math.min(width - x, height - y));
      let end = begin, area = 0, worst = Infinity;
      while (end < parts.length) {
        const next = area + parts[end].value * scale;
        const largest = parts[begin].value * scale, smallest = parts[end].value * scale;
        const ratio = Math.max(side * side * largest / (next * next),
          next * next / (side * side * smallest));
        if (ratio > worst) break;
        worst = ratio; area = next; end++;
      }
      const thickness = area / side;
      const isColumn = width - x >= height - y;
      let along = isColumn ? y : x;
      for (; begin < end; begin++) {
        const length = parts[begin].value * scale / thickness;
        places.push(isColumn ? { part: parts[begin], x, y: along, width: thickness, height: length } :
          { part: parts[begin], x: along, y, width: length, height: thickness });
        along += length;
      }
      if (isColumn) x += thickness; else y += thickness;
    }
    return places;
  }

  function draw(into, index, width, height, levels) {
    for (const place of squarify(partsOf(index), width, height)) {
      if (place.width < MIN_PIXELS || place.height < MIN_PIXELS) continue;
      const { part } = place, node = nodes[part.index];
      const name = node ? node[1] : part.name;
      const cell = document.createElement("div");
      const days = node ? node[DAYS] : part.days;
      cell.className = days === undefined ? "cell rest" : `cell age${ageOf(days)}`;
      cell.style.left = `${100 * place.x / width}%`;
      cell.style.top = `${100 * place.y / height}%`;
      cell.style.width = `${100 * place.width / width}%`;
      cell.style.height = `${100 * place.height / height}%`;
      cell.title = node ? `${pathOf(part.index)}\n${amount(part.value)}` :
        `${name} in ${pathOf(index)}\n${amount(part.value)}`;
      if (place.height >= LABEL && place.width >= 30) {
        const label = document.createElement("span");
        label.className = "label";
        label.textContent = `${name}  ${amount(part.value)}`;
        cell.append(label);
      }
      if (node) {
        cell.setAttribute("role", "button");
        cell.tabIndex = 0;
        cell.dataset.index = part.index;
        if (levels > 1 && place.width >= MIN_NESTED && place.height >= MIN_NESTED + LABEL) {
          const inner = document.createElement("div");
          inner.className = "inner";
          draw(inner, part.index, place.width - 4, place.height - LABEL - 2, levels - 1);
          cell.append(inner);
        }
      }
      into.append(cell);
    }
  }

  function show(index) {
    shown = index;
    trail.replaceChildren();
    const above = [];
    for (let at = index; at >= 0; at = nodes[at][0]) above.unshift(at);
    above.forEach((at) => {
      const step = document.createElement("button");
      step.type = "button";
      step.textContent = nodes[at][1];
      step.dataset.index = at;
      step.disabled = at === index;
      trail.append(step);
    });
    const sum = document.createElement("span");
    sum.textContent = `${amount(nodes[index][field])}`;
    trail.append(sum);
    box.replaceChildren();
    draw(box, index, box.clientWidth, box.clientHeight, LEVELS);
    if (!box.firstChild) box.textContent = "Nothing is in it.";
  }

  document.getElementById("by").addEventListener("click", (event) => {
    const { by } = event.target.dataset;
    if (!by) return;
    field = by === "bytes" ? BYTES : ENTRIES;
    for (const button of event.currentTarget.children)
      button.setAttribute("aria-pressed", button.dataset.by === by);
    show(shown);
  });
  const map = document.getElementById("map");
  const enter = (event) => {
    const target = event.target.closest("[data-index]");
    if (target) show(Number(target.dataset.index));
  };
  map.addEventListener("click", enter);
  map.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.getAttribute("role") === "button") enter(event);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && nodes[shown][0] >= 0) show(nodes[shown][0]);
  });
  const ages = document.getElementById("ages");
  [...AGES.map(([, words]) => words), "no files"].forEach((words, at) => {
    const item = document.createElement("li");
    const mark = document.createElement("span");
    mark.className = `age${at < AGES.length ? at : -1}`;
    item.append(mark, at ? words : `last change ${words}`);
    ages.append(item);
  });
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth !== width) { width = box.clientWidth; show(shown); }
  }).observe(box);
})();
