"use strict";
// Draws the figures of a report. Whatever runs say of themselves becomes text, never markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const runs = data.runs;
  const state = { axis: "seconds", smooth: 0, shown: runs.map((run) => run.shown), choice: {}, log: {} };
  const root = document.documentElement;
  const SPACE = "http://www.w3.org/2000/svg";

  // -- elements ------------------------------------------------------------------------------------------------------

  function fill(node, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  }
  const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes, ...children) => fill(document.createElementNS(SPACE, tag), attributes, children);
  const color = (k) => "k" + (k % 10);
  const known = (value) => typeof value === "number" && isFinite(value);

  // -- numbers -------------------------------------------------------------------------------------------------------

  function told(value, unit) {
    if (!known(value)) return "–";
    const size = Math.abs(value);
    let text;
    if (unit === "%") return +(100 * value).toFixed(size < 0.0995 ? 2 : 1) + " %";
    if (unit === "B") {
      const step = size < 1e3 ? 0 : size < 1e6 ? 1 : size < 1e9 ? 2 : 3;
      return +(value / 1000 ** step).toPrecision(4) + " " + ["B", "kB", "MB", "GB"][step];
    }
    if (size !== 0 && (size < 1e-3 || size >= 1e13)) text = value.toExponential(2);
    else if (size >= 1e9) text = +(value / 1e9).toPrecision(4) + " G";
    else if (size >= 1e6) text = +(value / 1e6).toPrecision(4) + " M";
    else if (size >= 1e4) text = +(value / 1e3).toPrecision(4) + " k";
    else text = String(+value.toPrecision(4));
    return unit ? text + " " + unit : text;
  }

  function ticks(low, high, count) {
    if (!(high > low)) return [low];
    const raw = (high - low) / count;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const found = [];
    for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && found.length < 30; k++) found.push(k * step);
    return found;
  }

  function logTicks(low, high) {
    const found = [];
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const skip = Math.max(1, Math.ceil((last - first) / 7));
    const within = last - first <= 2 ? [1, 2, 5] : [1];
    for (let power = first; power <= last; power += skip)
      for (const m of within) if (m * 10 ** power >= low * 0.999 && m * 10 ** power <= high * 1.001) found.push(m * 10 ** power);
    return found.length ? found : [low, high];
  }

  function scale(low, high, from, to, log) {
    const f = log ? Math.log : (v) => v;
    const width = f(high) - f(low) || 1;
    return (value) => from + ((f(value) - f(low)) / width) * (to - from);
  }

  function smoothed(values, weight) {
    let mean = 0, mass = 0;
    return values.map((value) => {
      if (!known(value)) return null;
      mean = weight * mean + (1 - weight) * value;
      mass = weight * mass + (1 - weight);
      return mean / mass;
    });
  }

  // -- figures -------------------------------------------------------------------------------------------------------

  const PAD = { left: 58, right: 14, top: 24, bottom: 34 };
  const figures = [];

  // build() returns what is to be drawn: {lines, ...}, {groups, ...} or null; choices: a select of the caption.
  function figure(id, title, about, build, how) {
    figures.push({ id, title, about, build, ...how });
  }

  const axes = { seconds: "seconds of training", samples: "samples", epochs: "epochs" };
  const epochAxis = { seconds: "seconds", samples: "samples", epochs: "epoch" };
  const chosen = (k) => state.shown[k];

  function epochLine(k, pick, extra) {
    const run = runs[k];
    const x = run.epochs.map((epoch) => epoch[epochAxis[state.axis]]);
    return { name: run.name, k, x, y: run.epochs.map(pick), marks: run.epochs.length <= 60, ...(run.about.predicted ? { kind: "dash" } : {}), ...extra };
  }
  const progressLine = (k, name, extra) => ({ name: runs[k].name, k, x: runs[k].progress[state.axis] || [], y: runs[k].progress[name] || [], ...extra });
  const some = (line) => line.x.some((x, i) => known(x) && known(line.y[i]));
  const each = (make) => runs.flatMap((run, k) => (chosen(k) ? make(run, k) : []));

  figure("loss", "Loss", "Mean over an epoch in training, each sample before its own update (line with dots); on held-out data, and all of what is predicted (dashed); within epochs (thin).", () => {
    const lines = each((run, k) => [
      progressLine(k, "loss", { kind: "faint", quiet: true }),
      epochLine(k, (epoch) => epoch.loss, { label: "training" }),
      epochLine(k, (epoch) => epoch.metrics.loss, { kind: "dash", label: "held out" }),
    ]).filter(some);
    return { lines, x: axes[state.axis], y: "loss", smooth: true };
  }, { logs: true });

  const metrics = [...new Set(runs.flatMap((run) => run.epochs.flatMap((epoch) => Object.keys(epoch.metrics))))].filter((name) => name !== "loss");
  figure("scores", "Scores on held-out data", "After each epoch.", (metric) => {
    const lines = each((run, k) => [epochLine(k, (epoch) => epoch.metrics[metric])]).filter(some);
    return { lines, x: axes[state.axis], y: metric };
  }, { choices: metrics, first: runs.map((run) => run.verdict.score && run.verdict.score.name).find((name) => metrics.includes(name)) });

  figure("speed", "Throughput", "Units of work a second, all workers together.", () => {
    const lines = each((run, k) => {
      const line = progressLine(k, "speed");
      if (line.y.filter(known).length > 1) return [line];
      const { speed, seconds } = run.verdict, all = Math.max(0, ...run.epochs.map((epoch) => epoch.samples || 0));
      const each = speed && seconds && all ? speed.value * seconds / all : 1;  // units of a sample
      let before = 0;
      return [epochLine(k, (epoch) => {
        const done = known(epoch.samples) && epoch.epoch_seconds ? each * (epoch.samples - before) / epoch.epoch_seconds : null;
        before = epoch.samples;
        return done;
      })];
    }).filter(some);
    const unit = runs.map((run) => run.verdict.speed && run.verdict.speed.unit).find(Boolean) || "samples";
    return { lines, x: axes[state.axis], y: unit + " a second", zero: true, smooth: true };
  });

  figure("rate", "Learning rate", "", () => {
    const lines = each((run, k) => {
      const line = progressLine(k, "lr");
      return [line.y.filter(known).length > 1 ? line : epochLine(k, (epoch) => epoch.lr)];
    }).filter(some);
    return { lines, x: axes[state.axis], y: "learning rate" };
  }, { logs: true });

  figure("balance", "Balance of workers", "Share of the visits that each worker made; equal bars are good.", () => {
    const groups = each((run, k) => (run.balance.length > 1 ? [{ label: run.name, bars: run.balance.map((value, w) => ({ name: "worker " + w, k: w, value })) }] : []));
    return { groups, y: "share of visits", unit: "%" };
  });

  const traced = runs.map((run, k) => k).filter((k) => runs[k].trace.length);
  const named = (list) => list.map((k) => runs[k].name);
  const numbered = (name) => runs.findIndex((run) => run.name === name);
  const deepest = traced.slice().sort((a, b) => runs[b].trace[0].workers.length - runs[a].trace[0].workers.length)[0];
  const traceBars = (run, pick) => run.trace.map((entry) => ({
    label: "epoch " + entry.epoch,
    bars: entry.workers.map((worker, w) => ({ name: "thread " + (known(worker.worker) ? worker.worker : w), k: w, value: worker[pick] })),
  }));

  figure("errors", "Gradient errors", "Share of gradients that were computed from, or written to, weights that another worker changed meanwhile: by thread and epoch.", (name) => {
    const run = runs[numbered(name)];
    return run && { groups: traceBars(run, "error_rate"), y: "error rate", unit: "%" };
  }, { choices: named(traced), first: runs[deepest] && runs[deepest].name, wide: true });

  figure("wrong", "Size of errors", "How far a gradient is from what it would have been at the weights of its moment, relative to its length: 0 is as good as serial, 1 as wrong as none.", (choice) => {
    const pick = choice === "mean" ? "wrong" : "wrong_" + choice;
    const mean = (entry) => {
      const values = entry ? entry.workers.map((worker) => worker[pick]).filter(known) : [];
      return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
    };
    const those = traced.filter(chosen);
    const epochs = [...new Set(those.flatMap((k) => runs[k].trace.map((entry) => entry.epoch)))].sort((a, b) => a - b);
    const groups = epochs.map((epoch) => ({
      label: "epoch " + epoch,
      bars: those.map((k) => ({ name: runs[k].name, k, value: mean(runs[k].trace.find((entry) => entry.epoch === epoch)) })),
    }));
    return { groups, y: "relative distance (" + choice + ")" };
  }, { choices: traced.length ? ["mean", "p50", "p99", "max"] : [] });

  figure("delays", "Delay of gradients", "How many gradients of others were applied between reading and writing.", () => {
    const names = [], counts = new Map();
    const bucket = (late) => (late < 2 ? late : 2 ** Math.floor(Math.log2(late)));
    each((run, k) => {
      const total = Object.values(run.delays).reduce((a, b) => a + b, 0);
      if (!total) return [];
      names.push(k);
      for (const [late, count] of Object.entries(run.delays)) {
        const place = bucket(+late), row = counts.get(place) || {};
        row[k] = (row[k] || 0) + count / total;
        counts.set(place, row);
      }
      return [];
    });
    const groups = [...counts.keys()].sort((a, b) => a - b).map((place) => ({
      label: place < 2 ? String(place) : place + "–" + (2 * place - 1),
      bars: names.map((k) => ({ name: runs[k].name, k, value: counts.get(place)[k] || 0 })),
    }));
    return { groups, y: "share of gradients", unit: "%" };
  });

  figure("scaling", "Speed-up by threads", "Against one thread; the dotted line is what perfect scaling would give.", () => {
    const names = [...new Set(data.speed_ups.map((point) => point.method))];
    const lines = names.map((name, k) => {
      const points = data.speed_ups.filter((point) => point.method === name).sort((a, b) => a.threads - b.threads);
      return { name, k, x: points.map((point) => point.threads), y: points.map((point) => point.speed_up), marks: true };
    }).filter(some);
    if (!lines.length) return null;
    const most = Math.max(...data.speed_ups.map((point) => point.threads));
    lines.push({ name: "perfect", k: -1, x: [1, most], y: [1, most], kind: "dots" });
    return { lines, x: "threads", y: "times one thread", zero: true };
  });

  const clustered = runs.map((run, k) => k).filter((k) => runs[k].nodes.length);
  const traffic = { "bytes sent": ["sent", "B"], "bytes received": ["received", "B"], "seconds waited": ["waited", "s"], "units a second": ["speed", ""], "memory": ["memory", "B"] };
  figure("cluster", "Nodes", "Each node since the run began.", (choice) => {
    const [column, unit] = traffic[choice];
    const lines = each((run, k) => run.nodes.map((node, n) => ({ name: clustered.length > 1 ? run.name + ", node " + node.node : "node " + node.node, k: clustered.length > 1 ? k : n, kind: clustered.length > 1 && n % 2 ? "dash" : "", x: node.seconds, y: node[column], marks: node.seconds.length < 40 }))).filter(some);
    return { lines, x: "seconds", y: choice, unit, zero: true };
  }, { choices: clustered.length ? Object.keys(traffic) : [] });

  const watched = [...new Set(runs.flatMap((run) => Object.keys(run.watched)))];
  figure("watched", "Watched", "", (name) => {
    const axis = state.axis === "seconds" ? "seconds" : "samples";
    const lines = each((run, k) => (run.watched[name] ? [{ name: run.name, k, x: run.watched[name][axis], y: run.watched[name].value, marks: run.watched[name].value.length < 60 }] : [])).filter(some);
    return { lines, x: axes[axis], y: name };
  }, { choices: watched, logs: true });

  const profiled = runs.map((run, k) => k).filter((k) => runs[k].profile.phases);
  figure("profile", "Where the time went", "Seconds of the main thread, by phase.", (name) => {
    const run = runs[numbered(name)];
    if (!run) return null;
    const phases = Object.entries(run.profile.phases).filter(([, seconds]) => seconds > 0);
    return { across: true, groups: phases.map(([phase, value]) => ({ label: phase, bars: [{ name: phase, k: numbered(name), value }] })), y: "seconds", unit: "s" };
  }, { choices: named(profiled) });
  figure("workers", "What workers did", "Seconds of each worker while training.", (name) => {
    const run = runs[numbered(name)];
    if (!run || !run.profile.workers.length) return null;
    const columns = Object.keys(run.profile.workers[0]);
    return { groups: run.profile.workers.map((worker, w) => ({ label: "worker " + w, bars: columns.map((column, k) => ({ name: column, k, value: worker[column] })) })), y: "seconds", unit: "s" };
  }, { choices: named(profiled) });

  // -- lines ---------------------------------------------------------------------------------------------------------

  function range(values, zero, log) {
    let low = Infinity, high = -Infinity;
    for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
    if (log) return [low / 1.1, high * 1.1];
    if (zero) low = Math.min(0, low);
    const room = (high - low || Math.abs(high) || 1) * 0.05;
    return [zero && low === 0 ? 0 : low - room, high + room];
  }

  function frame(width, height, label, plot) {
    return svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", tabindex: 0, "aria-label": label },
      svg("text", { x: 0, y: 11 }, plot.y),
      plot.x ? svg("text", { x: width - PAD.right, y: height - 2, "text-anchor": "end" }, plot.x) : "");
  }

  function drawLines(spec, plot, width, height) {
    const log = spec.logs && state.log[spec.id] && plot.lines.every((line) => line.y.every((y) => !known(y) || y > 0));
    const points = plot.lines.flatMap((line) => line.x.flatMap((x, i) => (known(x) && known(line.y[i]) ? [[x, line.y[i]]] : [])));
    const [x0, x1] = [Math.min(...points.map((p) => p[0])), Math.max(...points.map((p) => p[0]))];
    const [y0, y1] = range(points.map((p) => p[1]), plot.zero, log);
    const sx = scale(x0, x1 > x0 ? x1 : x0 + 1, PAD.left, width - PAD.right, false);
    const sy = scale(y0, y1, height - PAD.bottom, PAD.top, log);
    const picture = frame(width, height, spec.title, plot);
    for (const tick of log ? logTicks(y0, y1) : ticks(y0, y1, 5))
      picture.append(svg("line", { class: "grid", x1: PAD.left, x2: width - PAD.right, y1: sy(tick), y2: sy(tick) }),
        svg("text", { x: PAD.left - 8, y: sy(tick), "text-anchor": "end", "dominant-baseline": "middle" }, told(tick, plot.unit)));
    for (const tick of ticks(x0, x1, width > 420 ? 6 : 4))
      picture.append(svg("text", { x: sx(tick), y: height - PAD.bottom + 15, "text-anchor": "middle" }, told(tick)));
    picture.append(svg("line", { class: "axis", x1: PAD.left, x2: width - PAD.right, y1: height - PAD.bottom, y2: height - PAD.bottom }));
    for (const line of plot.lines) {
      const y = plot.smooth && state.smooth && !line.marks ? smoothed(line.y, state.smooth) : line.y;
      line.at = line.x.flatMap((x, i) => (known(x) && known(y[i]) ? [{ x, y: y[i], px: sx(x), py: sy(y[i]) }] : []));
      const way = line.at.map((p, i) => (i ? "L" : "M") + p.px.toFixed(1) + " " + p.py.toFixed(1)).join("");
      const own = (line.k < 0 ? "kx" : color(line.k)) + " ";
      picture.append(svg("path", { class: own + "line " + (line.kind || ""), d: way }));
      if (line.marks || line.at.length === 1) for (const p of line.at) picture.append(svg("circle", { class: own + "dot", cx: p.px, cy: p.py, r: line.at.length > 30 ? 2 : 3 }));
    }
    follow(picture, plot, width, height);
    return picture;
  }

  // A line and a note of values follow the pointer, or the arrow keys.
  function follow(picture, plot, width, height) {
    const lines = plot.lines.filter((line) => line.at.length && line.k >= 0 && !line.quiet);
    const stops = [...new Set(lines.flatMap((line) => line.at.map((p) => p.px)))].sort((a, b) => a - b);
    const cross = svg("line", { class: "cross", y1: PAD.top, y2: height - PAD.bottom, visibility: "hidden" });
    picture.append(cross);
    let place = -1;
    function to(next) {
      place = Math.max(0, Math.min(stops.length - 1, next));
      const px = stops[place];
      if (px === undefined) return;
      cross.setAttribute("x1", px); cross.setAttribute("x2", px); cross.setAttribute("visibility", "visible");
      const near = lines.map((line) => [line, line.at.reduce((a, b) => (Math.abs(b.px - px) < Math.abs(a.px - px) ? b : a))]).filter(([, p]) => Math.abs(p.px - px) < 12);
      const head = near.length ? near.reduce((a, b) => (Math.abs(b[1].px - px) < Math.abs(a[1].px - px) ? b : a))[1].x : null;
      showTip(picture, px, PAD.top, plot.x + " " + told(head), near.map(([line, p]) => [line.k, line.name + (line.label ? ", " + line.label : ""), told(p.y, plot.unit)]));
    }
    const leave = () => { cross.setAttribute("visibility", "hidden"); hideTip(picture); };
    picture.addEventListener("pointermove", (event) => {
      const box = picture.getBoundingClientRect();
      const px = ((event.clientX - box.left) / box.width) * width;
      to(stops.reduce((best, stop, i) => (Math.abs(stop - px) < Math.abs(stops[best] - px) ? i : best), 0));
    });
    picture.addEventListener("pointerleave", leave);
    picture.addEventListener("blur", leave);
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1, Home: -1e9, End: 1e9 }[event.key];
      if (step) { to(place + step); event.preventDefault(); }
      if (event.key === "Escape") leave();
    });
  }

  // -- bars ----------------------------------------------------------------------------------------------------------

  function drawBars(spec, plot, width, height) {
    const bars = plot.groups.flatMap((group) => group.bars.map((bar) => ({ ...bar, group: group.label })));
    const high = Math.max(0, ...bars.map((bar) => bar.value).filter(known)) || 1;
    const picture = frame(width, height, spec.title, plot.across ? { y: "" } : plot);
    const drawn = [];
    if (plot.across) {
      const left = 92, step = (height - 8) / bars.length;
      bars.forEach((bar, i) => {
        const long = Math.max(1, ((bar.value || 0) / high) * (width - left - 80));
        picture.append(svg("text", { x: left - 8, y: 4 + (i + 0.5) * step, "text-anchor": "end", "dominant-baseline": "middle" }, bar.name),
          drawn[i] = svg("rect", { class: color(bar.k) + " bar", x: left, y: 4 + i * step + step * 0.15, width: long, height: step * 0.7, rx: 2 }),
          svg("text", { class: "value", x: left + long + 6, y: 4 + (i + 0.5) * step, "dominant-baseline": "middle" }, told(bar.value, plot.unit)));
      });
    } else {
      const sy = scale(0, high * 1.05, height - PAD.bottom, PAD.top, false);
      for (const tick of ticks(0, high * 1.05, 5))
        picture.append(svg("line", { class: "grid", x1: PAD.left, x2: width - PAD.right, y1: sy(tick), y2: sy(tick) }),
          svg("text", { x: PAD.left - 8, y: sy(tick), "text-anchor": "end", "dominant-baseline": "middle" }, told(tick, plot.unit)));
      const room = (width - PAD.left - PAD.right) / plot.groups.length;
      let at = 0;
      plot.groups.forEach((group, g) => {
        const wide = Math.min(46, (room * 0.82) / group.bars.length), start = PAD.left + (g + 0.5) * room - (wide * group.bars.length) / 2;
        group.bars.forEach((bar, b) => {
          const top = sy(bar.value || 0);
          drawn[at++] = svg("rect", { class: color(bar.k) + " bar", x: start + b * wide, y: top, width: Math.max(1, wide - (wide > 4 ? 1 : 0.2)), height: Math.max(0.5, height - PAD.bottom - top), rx: wide > 8 ? 2 : 0 });
          picture.append(drawn[at - 1]);
        });
        const most = Math.max(3, Math.floor(room / 6.2)), label = group.label.length > most ? group.label.slice(0, most - 1) + "…" : group.label;
        if (room > 26 || g % Math.ceil(26 / room) === 0) picture.append(svg("text", { x: PAD.left + (g + 0.5) * room, y: height - PAD.bottom + 15, "text-anchor": "middle" }, room > 40 ? label : label.replace("epoch ", "")));
      });
      picture.append(svg("line", { class: "axis", x1: PAD.left, x2: width - PAD.right, y1: height - PAD.bottom, y2: height - PAD.bottom }));
    }
    let place = -1;
    const to = (next) => {
      place = Math.max(0, Math.min(bars.length - 1, next));
      const bar = bars[place], box = drawn[place];
      showTip(picture, +box.getAttribute("x") + +box.getAttribute("width") / 2, +box.getAttribute("y"), bar.group, [[bar.k, bar.name, told(bar.value, plot.unit)]]);
    };
    drawn.forEach((box, i) => { box.addEventListener("pointerenter", () => to(i)); });
    picture.addEventListener("pointerleave", () => hideTip(picture));
    picture.addEventListener("blur", () => hideTip(picture));
    picture.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -1e9, End: 1e9 }[event.key];
      if (step) { to(place + step); event.preventDefault(); }
      if (event.key === "Escape") hideTip(picture);
    });
    return picture;
  }

  function showTip(picture, x, y, head, rows) {
    hideTip(picture);
    const ratio = picture.getBoundingClientRect().width / picture.viewBox.baseVal.width;
    const tip = el("div", { class: "tip", role: "status" }, el("b", {}, head), rows.slice(0, 12).map(([k, name, value]) => el("div", {}, el("span", { class: "key " + color(k) }), name + ": " + value)));
    picture.parentNode.append(tip);
    const right = x > picture.viewBox.baseVal.width * 0.55;
    const base = picture.getBoundingClientRect().left - picture.closest("figure").getBoundingClientRect().left;
    const top = picture.getBoundingClientRect().top - picture.closest("figure").getBoundingClientRect().top;
    tip.style.left = base + x * ratio + (right ? -tip.offsetWidth - 12 : 12) + "px";
    tip.style.top = top + Math.max(0, y * ratio - 6) + "px";
  }
  const hideTip = (picture) => picture.parentNode && picture.parentNode.querySelectorAll(".tip").forEach((tip) => tip.remove());

  // -- tables --------------------------------------------------------------------------------------------------------

  function rowsOf(plot) {
    if (plot.groups) return [["group", "name", plot.y], ...plot.groups.flatMap((group) => group.bars.map((bar) => [group.label, bar.name, bar.value]))];
    return [["series", plot.x, plot.y], ...plot.lines.flatMap((line) => line.x.flatMap((x, i) => (known(x) && known(line.y[i]) ? [[line.name + (line.label ? ", " + line.label : line.quiet ? ", within epochs" : ""), x, line.y[i]]] : [])))];
  }

  function tableOf(plot) {
    const [head, ...rows] = rowsOf(plot);
    const copy = el("button", { type: "button", onclick: () => {
      put(rowsOf(plot).map((row) => row.map((cell) => String(cell ?? "").replace(/[\t\n]/g, " ")).join("\t")).join("\n"));
      copy.textContent = "Copied"; setTimeout(() => { copy.textContent = "Copy"; }, 1500);
    } }, "Copy");
    const cell = (value) => el("td", { class: typeof value === "number" ? "n" : "" }, typeof value === "number" ? String(+value.toPrecision(6)) : value ?? "–");
    return [copy, el("div", { class: "scroll", tabindex: 0 }, el("table", {}, el("thead", {}, el("tr", {}, head.map((name) => el("th", { scope: "col" }, name)))), el("tbody", {}, rows.slice(0, 3000).map((row) => el("tr", {}, row.map(cell))))))];
  }

  function put(text) {
    const area = el("textarea", { class: "hidden" });
    area.value = text;
    document.body.append(area); area.select();
    document.execCommand("copy"); // a page from a file has no other clipboard
    area.remove();
  }

  // -- the page ------------------------------------------------------------------------------------------------------

  function legend(plot) {
    const items = new Map();
    if (plot.lines) for (const line of plot.lines) { if (!line.quiet) items.set(line.name + (line.label ? ", " + line.label : ""), [line.k < 0 ? "kx" : color(line.k), line.kind || ""]); }
    else if (!plot.across) for (const group of plot.groups) for (const bar of group.bars) items.set(bar.name, [color(bar.k), ""]);
    if (items.size < 2) return "";
    return el("div", { class: "legend" }, [...items].slice(0, 24).map(([name, [own, kind]]) => el("span", {}, el("i", { class: own + " " + kind }), name)));
  }

  const empty = (plot) => !plot || !(plot.lines ? plot.lines.length : plot.groups.some((group) => group.bars.some((bar) => known(bar.value))));

  function draw(spec) {
    const holder = spec.holder;
    const choice = state.choice[spec.id] ?? spec.first ?? (spec.choices || [])[0];
    const plot = spec.choices && !spec.choices.length ? null : spec.build(choice);
    const open = holder.querySelector("details") && holder.querySelector("details").open;
    holder.replaceChildren();
    holder.hidden = empty(plot) && !spec.drawn;
    if (holder.hidden) return;
    spec.drawn = true;
    const tools = [];
    if (spec.choices && spec.choices.length > 1)
      tools.push(el("select", { "aria-label": "What of " + spec.title, onchange: (event) => { state.choice[spec.id] = event.target.value; draw(spec); } }, spec.choices.map((name) => el("option", { value: name, selected: name === choice }, name))));
    if (spec.logs) tools.push(el("button", { type: "button", "aria-pressed": String(!!state.log[spec.id]), onclick: () => { state.log[spec.id] = !state.log[spec.id]; draw(spec); holder.querySelector("button").focus(); } }, "log"));
    holder.append(el("figcaption", {}, el("h2", {}, spec.title), tools), spec.about ? el("p", {}, spec.about) : "");
    if (empty(plot)) { holder.append(el("p", {}, "None of the runs that are shown has it.")); return; }
    const width = Math.max(260, holder.clientWidth - 38), height = plot.across ? Math.max(120, plot.groups.length * 24) : 250;
    holder.append((plot.lines ? drawLines : drawBars)(spec, plot, width, height), legend(plot));
    const table = el("details", { ontoggle: () => { if (table.open && table.children.length === 1) table.append(...tableOf(plot)); } }, el("summary", {}, "Table"));
    holder.append(table);
    if (open) table.open = true;
  }

  const redraw = () => figures.forEach(draw);

  function controls() {
    const place = document.getElementById("controls");
    const axis = el("select", { "aria-label": "Horizontal axis", onchange: (event) => { state.axis = event.target.value; redraw(); } }, Object.entries(axes).map(([name, label]) => el("option", { value: name }, label)));
    const smooth = el("input", { type: "range", min: 0, max: 0.95, step: 0.05, value: 0, "aria-label": "Smoothing", oninput: (event) => { state.smooth = +event.target.value; redraw(); } });
    const save = el("button", { type: "button", onclick: () => {
      const link = el("a", { href: "data:application/json;charset=utf-8," + encodeURIComponent(JSON.stringify(data)), download: "report.json" });
      document.body.append(link); link.click(); link.remove();
    } }, "Data as JSON");
    place.append(el("label", {}, el("span", {}, "Axis"), axis), el("label", {}, el("span", {}, "Smoothing"), smooth), save);
  }

  function theme(dark) { root.dataset.theme = dark ? "dark" : "light"; }
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  theme(prefers.matches);
  prefers.addEventListener("change", (event) => theme(event.matches));
  document.getElementById("theme").addEventListener("click", () => theme(root.dataset.theme !== "dark"));
  addEventListener("beforeprint", () => theme(false));
  document.querySelectorAll("input[data-run]").forEach((box) => box.addEventListener("change", () => { state.shown[+box.dataset.run] = box.checked; redraw(); }));
  const place = document.getElementById("figures");
  for (const spec of figures) { spec.holder = el("figure", { id: spec.id, class: spec.wide ? "wide" : "" }); place.append(spec.holder); }
  controls();
  redraw();
  let width = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; redraw(); } });
  root.dataset.ready = String(figures.filter((spec) => spec.drawn).length);
})();
