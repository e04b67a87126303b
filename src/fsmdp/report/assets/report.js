"use strict";
(() => {
  const { learners, figures } = JSON.parse(document.getElementById("figures").textContent);
  const root = document.documentElement;
  const hiddenEverywhere = new Set();
  const drawn = new Map(); // element -> { spec, hidden }, hidden: learners switched off in this figure alone

  // Colours live in the style sheet; a probe resolves light-dark() for plotly.
  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  const resolve = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const faded = (color, opacity) => color.replace(/^rgba?\(([^)]*)\)$/, (_, parts) =>
    `rgba(${parts.split(/[ ,/]+/).slice(0, 3).join(",")},${opacity})`);

  const swatch = (dash, ink) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("width", "30");
    svg.setAttribute("height", "10");
    svg.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    const strokes = learners.patterns[dash].map((length) => length * 2.2).join(" ");
    for (const [key, value] of Object.entries({
      x1: 0, x2: 30, y1: 5, y2: 5, "stroke-width": 2.4, "stroke-dasharray": strokes,
    })) line.setAttribute(key, value);
    line.style.stroke = `var(--${ink})`;
    svg.append(line);
    return svg;
  };

  const painted = (spec, hidden, narrow) => {
    const ink = resolve("ink"), muted = resolve("muted"), rule = resolve("rule"), card = resolve("card");
    const data = spec.data.map((trace) => {
      const { learner, band } = trace.meta;
      const copy = { ...trace, visible: !(hidden.has(learner) || hiddenEverywhere.has(learner)) };
      if (trace.meta.ink === "nodes") {
        copy.marker = { ...trace.marker, line: { ...trace.marker.line, color: ink } };
        return copy;
      }
      const color = resolve(trace.meta.ink);
      if (trace.line) copy.line = { ...trace.line, color };
      if (trace.marker) copy.marker = { ...trace.marker, color };
      if (trace.error_x) copy.error_x = { ...trace.error_x, color };
      if (trace.textfont) copy.textfont = { ...trace.textfont, color };
      if (band) copy.fillcolor = faded(color, learners.opacity);
      return copy;
    });
    const layout = {
      ...spec.layout,
      height: undefined, // the figure fills its card
      autosize: true,
      margin: { l: 12, r: 12, t: 26, b: 12 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 11 : 12, color: muted },
      hoverlabel: { bgcolor: card, bordercolor: rule, font: { color: ink, size: 12 } },
      dragmode: narrow ? false : "zoom",
      annotations: spec.layout.annotations.map((one) => ({ ...one, font: { color: ink, size: 12.5 } })),
      shapes: (spec.layout.shapes || []).map((one) => ({ ...one, line: { ...one.line, color: muted } })),
    };
    for (const key of Object.keys(layout)) {
      if (!/^[xy]axis/.test(key)) continue;
      layout[key] = { gridcolor: rule, zerolinecolor: rule, linecolor: rule, automargin: true, ...layout[key] };
    }
    return [data, layout];
  };

  const draw = (element) => {
    const state = drawn.get(element);
    const [data, layout] = painted(state.spec, state.hidden, element.clientWidth < 480);
    return Plotly.react(element, data, layout, {
      responsive: true, displaylogo: false, displayModeBar: false, scrollZoom: false,
    });
  };

  const redraw = () => {
    for (const [element, state] of drawn) if (state.ready) draw(element);
  };

  const buildLegend = (element, state) => {
    const box = element.parentElement.querySelector(".legend");
    for (const entry of state.spec.legend) {
      const owned = entry.learner !== undefined;
      const item = document.createElement(owned ? "button" : "span");
      item.className = "entry";
      item.append(swatch(entry.dash, entry.ink));
      const text = document.createElement("span");
      text.textContent = entry.label;
      if (entry.note) {
        const note = document.createElement("span");
        note.className = "note";
        note.textContent = ` ${entry.note}`;
        text.append(note);
      }
      item.append(text);
      if (owned) {
        item.type = "button";
        item.dataset.learner = entry.learner;
        item.setAttribute("aria-pressed", "true");
        item.title = "Show or hide in this figure";
        item.addEventListener("click", () => {
          const off = state.hidden.has(entry.learner) || hiddenEverywhere.has(entry.learner);
          if (off && hiddenEverywhere.has(entry.learner)) toggleEverywhere(entry.learner);
          else if (off) state.hidden.delete(entry.learner);
          else state.hidden.add(entry.learner);
          mark();
          draw(element);
        });
      }
      box.append(item);
    }
  };

  const mark = () => {
    for (const chip of document.querySelectorAll(".chip")) {
      chip.setAttribute("aria-pressed", String(!hiddenEverywhere.has(Number(chip.dataset.learner))));
    }
    for (const [element, state] of drawn) {
      for (const item of element.parentElement.querySelectorAll(".entry[data-learner]")) {
        const learner = Number(item.dataset.learner);
        item.setAttribute("aria-pressed", String(!state.hidden.has(learner) && !hiddenEverywhere.has(learner)));
      }
    }
  };

  const toggleEverywhere = (learner) => {
    if (hiddenEverywhere.has(learner)) hiddenEverywhere.delete(learner);
    else hiddenEverywhere.add(learner);
    for (const state of drawn.values()) state.hidden.delete(learner);
    mark();
    redraw();
  };

  for (const chip of document.querySelectorAll(".chip")) {
    const learner = Number(chip.dataset.learner);
    chip.prepend(swatch(learners.dashes[learner], `learner-${learner}`));
    chip.addEventListener("click", () => toggleEverywhere(learner));
  }

  // A choice made by hand outlasts the page where the browser lets files store anything.
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const remembered = () => { try { return localStorage.getItem("fsmdp-theme"); } catch { return null; } };
  if (remembered()) root.dataset.theme = remembered();
  document.getElementById("theme").addEventListener("click", () => {
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    try { localStorage.setItem("fsmdp-theme", root.dataset.theme); } catch { /* not kept */ }
    redraw();
  });
  dark.addEventListener("change", redraw);

  // Figures are drawn when they come near the window, and all of them before printing.
  const show = (element) => {
    const state = drawn.get(element);
    if (state.ready) return;
    state.ready = true;
    draw(element);
  };
  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) { near.unobserve(entry.target); show(entry.target); }
  }, { rootMargin: "800px" });
  for (const element of document.querySelectorAll(".plot")) {
    const state = { spec: figures[element.id], hidden: new Set(), ready: false };
    element.style.minHeight = `${state.spec.layout.height}px`;
    drawn.set(element, state);
    buildLegend(element, state);
    near.observe(element);
  }
  addEventListener("beforeprint", () => { for (const element of drawn.keys()) show(element); });
})();
