"use strict";
// Draws the curves. Text from the data reaches the page as text nodes, or escaped for Plotly's own small markup.
(async () => {
  const dark = matchMedia("(prefers-color-scheme: dark)");

  async function unpack(id) {
    const text = atob(document.getElementById(id).textContent.trim());
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  function digits(v) { return v >= 99.95 ? v.toFixed(0) : v >= 9.995 ? v.toFixed(1) : v.toFixed(2); }
  function scaled(v, units) {
    for (const [factor, unit] of units) if (v >= 0.9995 * factor) return digits(v / factor) + " " + unit;
    const [factor, unit] = units[units.length - 1];
    return digits(v / factor) + " " + unit;
  }
  const seconds = (v) => scaled(v, [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]]);
  const rate = (v) => scaled(v, [[1e9, "GB/s"], [1e6, "MB/s"], [1e3, "kB/s"], [1, "B/s"]]);
  function size(v) {
    for (const [letter, unit] of [["G", 2 ** 30], ["M", 2 ** 20], ["K", 2 ** 10]])
      if (v >= unit) return (v % unit ? digits(v / unit) : v / unit) + " " + letter + "iB";
    return v + " B";
  }
  const round = (text) => text.replace(/\.0+ /, " ").replace(/(\.\d*?)0+ /, "$1 ");
  const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  let data;
  try {
    const [library, text] = [await unpack("plotly"), await unpack("data")];
    const script = document.createElement("script");
    script.textContent = library;
    document.head.append(script);
    data = JSON.parse(text);
    if (!window.Plotly) throw new Error("the plot library did not start");
  } catch (error) {
    document.getElementById("noplots").append(" (" + error.message + ")");
    return;
  }
  document.documentElement.classList.add("ready");

  const look = (mechanism) => (Object.hasOwn(data.looks, mechanism) ? data.looks[mechanism] : data.other);
  let printing = false;
  const colour = (mechanism) => look(mechanism)[dark.matches && !printing ? 1 : 0];
  // Variants of a mechanism beyond the number of dashes are mixed with the colour of the text.
  function toneOf(line) {
    const tone = colour(line.mechanism);
    if (!line.shade) return tone;
    const ink = variable("--ink"), part = (hex, i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
    const share = Math.min(0.75, 0.4 * line.shade);
    return "#" + [0, 1, 2].map((i) => Math.round(part(tone, i) * (1 - share) + part(ink, i) * share).toString(16).padStart(2, "0")).join("");
  }
  const faded = (hex, alpha) => hex + Math.round(alpha * 255).toString(16).padStart(2, "0");

  function byteTicks(low, high, narrow) {
    const first = Math.floor(Math.log2(low)), last = Math.ceil(Math.log2(high));
    const step = Math.max(2, 2 * Math.ceil((last - first) / (narrow ? 8 : 16)));
    const values = [];
    for (let power = Math.ceil(first / step) * step; power <= last; power += step) values.push(2 ** power);
    return { tickvals: values, ticktext: values.map(size) };
  }
  function decades(low, high, text) {
    const values = [];
    const fine = high / low < 200 ? [1, 2, 5] : [1];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const digit of fine) values.push(digit * 10 ** power);
    return { tickvals: values, ticktext: values.map((v) => round(text(v * 1.0000001))) };
  }
  function steps(high) {
    const unit = 10 ** Math.floor(Math.log10(high)), step = high / unit > 4 ? unit : unit / 2;
    const values = Array.from({ length: Math.floor(high / step) + 1 }, (_, i) => i * step);
    return { tickvals: values, ticktext: values.map((v) => (v ? round(rate(v * 1.0000001)) : "0")) };
  }

  // The fastest time of all curves at each size.
  function fastest(curves) {
    const best = new Map();
    for (const line of curves.series)
      line.bytes.forEach((b, i) => best.set(b, Math.min(line.seconds[i], best.get(b) ?? Infinity)));
    return best;
  }
  const values = (kind, bytes, times, best) =>
    bytes.map((b, i) => (kind === "rate" ? b / times[i] : kind === "time" ? times[i] : times[i] / (best.get(b) ?? times[i])));

  function hover(line, i, limit) {
    const figure = line.bytes[i] / line.seconds[i];
    const share = limit ? `, ${Math.round((100 * figure) / limit)} % of the limit` : "";
    return `<b>${plain(line.label)}</b><br>${size(line.bytes[i])} in ${seconds(line.seconds[i])}` +
      ` [${seconds(line.low[i])} to ${seconds(line.high[i])}]<br>${rate(figure)}${share}`;
  }

  function traces(curves, kind, hidden) {
    const found = [], picked = new Set(curves.chosen.map((one) => one.label));
    const halo = { x: [], y: [] }, best = fastest(curves);
    for (const piece of curves.chosen) {
      halo.x.push(...piece.bytes);
      halo.y.push(...values(kind, piece.bytes, piece.seconds, best));
    }
    found.push({ ...halo, mode: "lines", hoverinfo: "skip", line: { color: faded(variable("--ink"), 0.2), width: 14 } });
    for (const line of curves.series) {
      if (hidden.has(line.label)) continue;
      const tone = toneOf(line), strong = picked.has(line.label);
      const low = values(kind, line.bytes, line.low, best), high = values(kind, line.bytes, line.high, best);
      found.push({
        x: [...line.bytes, ...[...line.bytes].reverse()], y: [...low, ...[...high].reverse()],
        fill: "toself", fillcolor: faded(tone, 0.16), line: { width: 0 }, mode: "lines", hoverinfo: "skip",
      });
      found.push({
        x: line.bytes, y: values(kind, line.bytes, line.seconds, best), mode: "lines+markers",
        text: line.bytes.map((_, i) => hover(line, i, curves.limit)), hovertemplate: "%{text}<extra></extra>",
        opacity: strong ? 1 : 0.62,
        line: { color: tone, width: strong ? 2.4 : 1.4, dash: data.dashes[line.dash] },
        marker: { color: tone, size: strong ? 6.5 : 4.5, symbol: look(line.mechanism)[2] },
      });
    }
    return found;
  }

  function extent(curves, kind) {
    const best = fastest(curves), all = curves.series.flatMap((line) => values(kind, line.bytes, line.seconds, best));
    if (kind === "ratio") all.push(0.97, 1.5);
    if (kind === "rate" && curves.limit) all.push(curves.limit);
    const x = curves.series.flatMap((line) => line.bytes);
    return { x: [Math.min(...x), Math.max(...x)], y: [Math.min(...all), Math.max(...all)] };
  }

  function limitLine(curves, kind, range) {
    if (!curves.limit || kind === "ratio") return null;
    const ends = kind === "rate" ? [curves.limit, curves.limit] : range.x.map((b) => b / curves.limit);
    return { type: "line", x0: range.x[0], x1: range.x[1], y0: ends[0], y1: ends[1], line: { color: variable("--muted"), width: 1.5, dash: "5px,4px" } };
  }

  function strip(curves, range, width) {
    const shapes = [], notes = [];
    const whole = Math.log10(range.x[1] / range.x[0]) || 1;
    for (const piece of curves.chosen) {
      const from = Math.max(piece.from, range.x[0]), to = Math.min(piece.to + 1, range.x[1]);
      if (!(to > from)) continue;
      shapes.push({ type: "rect", yref: "paper", x0: from, x1: to, y0: 1.015, y1: 1.05, fillcolor: colour(piece.mechanism), line: { color: variable("--card"), width: 1.5 } });
      if ((Math.log10(to / from) / whole) * width > piece.mechanism.length * 7)
        notes.push({ yref: "paper", x: (Math.log10(from) + Math.log10(to)) / 2, y: 1.05, yanchor: "bottom", text: plain(piece.mechanism), showarrow: false, font: { size: 11, color: variable("--muted") } });
    }
    return { shapes, notes };
  }

  const titles = { time: "Time", rate: "Bandwidth", ratio: "Time ÷ fastest" };
  const texts = { time: seconds, rate, ratio: (v) => round(v.toFixed(2) + " ") + "×" };

  function layout(curves, kind, width, linear) {
    const range = extent(curves, kind), narrow = width < 420;
    const { shapes, notes } = strip(curves, range, width - 80);
    const limit = limitLine(curves, kind, range);
    if (limit) shapes.push(limit);
    if (limit && kind === "rate")
      notes.push({ x: Math.log10(range.x[0]), xanchor: "left", y: linear ? curves.limit : Math.log10(curves.limit), yanchor: "bottom", text: `limit ${rate(curves.limit)}`, showarrow: false, font: { size: 11.5, color: variable("--muted") } });
    const grid = { gridcolor: variable("--rule"), linecolor: variable("--rule"), zeroline: false, type: "log", automargin: true };
    const pad = (low, high) => { const extra = 0.03 * Math.log10(high / low) + 0.02; return [Math.log10(low) - extra, Math.log10(high) + extra]; };
    return {
      shapes, annotations: notes, showlegend: false, hovermode: "closest", dragmode: narrow ? false : "zoom",
      margin: { l: 62, r: 12, t: 46, b: 30 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: variable("--muted") },
      hoverlabel: { bgcolor: variable("--card"), bordercolor: variable("--rule"), font: { color: variable("--ink"), size: 12.5 }, align: "left" },
      title: { text: titles[kind], x: 0, xanchor: "left", y: 0.985, yanchor: "top", font: { size: 13.5, color: variable("--ink") } },
      xaxis: { ...grid, range: pad(...range.x), ...byteTicks(...range.x, width < 480), tickangle: 0 },
      yaxis: linear
        ? { ...grid, type: "linear", range: [0, 1.06 * range.y[1]], ...steps(range.y[1]) }
        : { ...grid, range: pad(range.y[0], range.y[1] * (kind === "rate" ? 1.6 : 1)), ...decades(...range.y, texts[kind]) },
    };
  }

  function sample(line) {
    const ns = "http://www.w3.org/2000/svg", svg = document.createElementNS(ns, "svg"), path = document.createElementNS(ns, "path");
    const dashes = { solid: "", dash: "6 4", dot: "2 3", dashdot: "6 3 2 3", longdash: "10 4", longdashdot: "10 3 2 3" };
    svg.setAttribute("width", 30); svg.setAttribute("height", 10);
    path.setAttribute("d", "M0 5H30"); path.setAttribute("stroke", toneOf(line)); path.setAttribute("stroke-width", 3);
    path.setAttribute("stroke-dasharray", dashes[data.dashes[line.dash]]);
    svg.append(path);
    return svg;
  }

  const PRINTED = { width: 660, height: 285, autosize: false };
  const cards = new Map();

  function legend(card, state, curves) {
    const box = card.querySelector(".legend");
    box.replaceChildren(...curves.series.map((line) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("aria-pressed", String(!state.hidden.has(line.label)));
      button.title = "Show or hide";
      button.append(sample(line), document.createTextNode(line.label.replaceAll(",", ", ")));
      button.onclick = () => { state.hidden.has(line.label) ? state.hidden.delete(line.label) : state.hidden.add(line.label); draw(card); };
      return button;
    }));
  }

  function draw(card) {
    const state = cards.get(card), curves = data.groups[Number(card.dataset.group)].operations[state.operation];
    for (const tab of card.querySelectorAll("[data-operation]")) tab.setAttribute("aria-pressed", String(tab.dataset.operation === state.operation));
    for (const scale of card.querySelectorAll("[data-scale]")) scale.setAttribute("aria-pressed", String(state[scale.dataset.scale]));
    card.querySelector(".definition").textContent = data.definitions[state.operation] || "";
    for (const plot of card.querySelectorAll(".plot")) {
      const kind = plot.dataset.kind === "time" && state.relative ? "ratio" : plot.dataset.kind;
      const width = printing ? PRINTED.width : plot.clientWidth;
      const shape = { ...layout(curves, kind, width, kind === "rate" && state.linear), ...(printing ? PRINTED : { autosize: true }) };
      Plotly.react(plot, traces(curves, kind, state.hidden), shape,
        { responsive: !printing, displaylogo: false, displayModeBar: false, doubleClick: "reset" });
    }
    legend(card, state, curves);
    state.drawn = true;
  }

  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && !cards.get(entry.target).drawn) draw(entry.target);
  }, { rootMargin: "600px" });
  for (const card of document.querySelectorAll("article.curves")) {
    const operations = Object.keys(data.groups[Number(card.dataset.group)].operations);
    cards.set(card, { operation: operations[0], hidden: new Set(), drawn: false, relative: false, linear: false });
    for (const tab of card.querySelectorAll("[data-operation]"))
      tab.onclick = () => { cards.get(card).operation = tab.dataset.operation; draw(card); };
    for (const scale of card.querySelectorAll("[data-scale]"))
      scale.onclick = () => { cards.get(card)[scale.dataset.scale] = !cards.get(card)[scale.dataset.scale]; draw(card); };
    watcher.observe(card);
  }
  const redraw = () => { for (const [card, state] of cards) if (state.drawn) draw(card); };
  dark.addEventListener("change", redraw);
  // Paper is light and narrow: every visible card is drawn for it, and for the screen again afterwards.
  function paper(on) {
    printing = on;
    document.documentElement.classList.toggle("printing", on);
    for (const [card, state] of cards) if (on ? card.offsetParent : state.drawn) draw(card);
  }
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));

  const links = new Map([...document.querySelectorAll("nav div a")].map((a) => [a.hash.slice(1), a]));
  const spy = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) {
      for (const a of links.values()) a.classList.remove("here");
      links.get(entry.target.id)?.classList.add("here");
    }
  }, { rootMargin: "-20% 0px -70% 0px" });
  for (const section of document.querySelectorAll("main > section")) spy.observe(section);
})();
