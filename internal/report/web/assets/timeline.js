// Draws the timelines of a page from the payloads in it (payload.go says how they are
// laid out). A frame costs a walk over the spans in view and one column of arithmetic for
// each pixel: a row is computed as one line of pixels, in which every span adds its colour
// by the share of the pixel that it covers, and is then stretched to its height.
"use strict";
(() => {
  const gutter = 148, axisHeight = 22, deviceHeight = 24, memoryHeight = 34, linkHeight = 13, gap = 3;
  const TRANSFER = 4, CRITICAL = 8;
  const panels = [];
  const view = { from: 0, to: 1, whole: 1, colour: "group" };
  const theme = {};

  // Colours ----------------------------------------------------------------

  function parse(css) { // "#rrggbb" of the style sheet
    const n = parseInt(css.trim().slice(1), 16);
    return [n >> 16 & 255, n >> 8 & 255, n & 255];
  }

  function readTheme() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["bg", "text", "faint", "line", "lane", "accent", "warn"]) theme[name] = style.getPropertyValue("--" + name).trim();
    theme.groups = [];
    for (let i = 0; i < 12; i++) theme.groups.push(parse(style.getPropertyValue("--g" + i)));
    for (const p of panels) p.colours = null;
  }

  const mix = (a, b, share) => a.map((x, i) => x * (1 - share) + b[i] * share);

  // coloursOf returns three bytes for each span.
  function coloursOf(p) {
    if (p.colours && p.colours.by === view.colour) return p.colours.rgb;
    const rgb = new Uint8Array(3 * p.head.spans), lane = parse(theme.lane), phases = [mix(theme.groups[1], lane, 0.45), theme.groups[1], theme.groups[2], theme.groups[3]];
    const faint = mix(parse(theme.faint), lane, 0.6), critical = parse(theme.warn);
    const groups = p.head.colours.map(c => [mix(theme.groups[c], lane, 0.45), theme.groups[c]]);
    for (let i = 0; i < p.head.spans; i++) {
      const flags = p.kinds[4 * i + 1];
      let c = groups[p.kinds[4 * i]][(flags & 3) === 0 ? 0 : 1];
      if (view.colour === "phase") c = phases[flags & 3];
      if (view.colour === "critical") c = flags & CRITICAL ? critical : faint;
      rgb[3 * i] = c[0]; rgb[3 * i + 1] = c[1]; rgb[3 * i + 2] = c[2];
    }
    p.colours = { by: view.colour, rgb };
    return rgb;
  }

  // Reading ----------------------------------------------------------------

  async function read(text) {
    const b64 = text.trim().replace(/-/g, "+").replace(/_/g, "/"), raw = atob(b64), bytes = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const buffer = await new Response(stream).arrayBuffer();
    const size = new DataView(buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
    const samples = head.memory ? head.memory.reduce((n, m) => n + m.samples, 0) : 0, items = head.tracks.reduce((n, t) => n + t.items, 0);
    let at = 4 + size;
    at += (8 - at % 8) % 8;
    const take = (type, n) => { const a = new type(buffer, at, n); at += n * type.BYTES_PER_ELEMENT; return a; };
    const p = { head, times: take(Float64Array, 2 * head.spans), sizes: take(Float64Array, head.spans), memory: take(Float64Array, 2 * samples), items: take(Uint32Array, items), ops: take(Uint32Array, head.spans), kinds: take(Uint8Array, 4 * head.spans), rest: new Uint8Array(buffer, at) };
    prepare(p);
    return p;
  }

  // prepare gives each row its own arrays, in order of time.
  function prepare(p) {
    p.rows = [];
    let at = 0, y = axisHeight, sample = 0;
    for (const t of p.head.tracks) {
      const r = { name: t.name, device: t.device, items: p.items.subarray(at, at + t.items), starts: new Float64Array(t.items), ends: new Float64Array(t.items), longest: 0, y, height: t.device < 0 ? linkHeight : deviceHeight };
      at += t.items;
      for (let i = 0; i < t.items; i++) {
        r.starts[i] = p.times[2 * r.items[i]];
        r.ends[i] = p.times[2 * r.items[i] + 1];
        r.longest = Math.max(r.longest, r.ends[i] - r.starts[i]);
      }
      y += r.height + gap;
      p.rows.push(r);
    }
    p.height = y;
    // Memory goes below its device: rows behind it move down.
    (p.head.memory || []).forEach((m, d) => {
      const r = p.rows.find(r => r.device === d);
      m.at = p.memory.subarray(2 * sample, 2 * (sample + m.samples));
      sample += m.samples;
      r.memory = m;
    });
    y = axisHeight;
    for (const r of p.rows) {
      r.y = y;
      y += r.height + (r.memory ? memoryHeight : 0) + gap;
    }
    p.height = y + 2;
    // One scale for all devices: to the fullest limit where a third of it is used.
    let peak = 0, limit = 0;
    for (const m of p.head.memory || []) { peak = Math.max(peak, m.peak_bytes); limit = Math.max(limit, m.limit_bytes); }
    p.memoryTop = 1.15 * (peak > limit / 3 ? Math.max(peak, limit) : peak);
    p.row = 0;
    p.selected = -1;
  }

  // name returns the name of op k.
  function name(p, k) {
    if (!p.names) p.names = new TextDecoder().decode(p.rest).split("\n");
    return p.names[k];
  }

  // Words ------------------------------------------------------------------

  const digits = x => x >= 1000 ? x.toFixed(0) : String(+x.toPrecision(4));
  const unit = (x, scale) => { for (const [s, n] of scale) if (Math.abs(x) >= s) return digits(x / s) + " " + n; const [s, n] = scale[scale.length - 1]; return digits(x / s) + " " + n; };
  const seconds = x => x === 0 ? "0 s" : unit(x, [[1, "s"], [1e-3, "ms"], [1e-6, "us"], [1e-9, "ns"]]);
  const bytes = x => unit(x, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]]);

  function describe(p, i) {
    const k = 4 * i, flags = p.kinds[k + 1], start = p.times[2 * i], end = p.times[2 * i + 1];
    let text = name(p, p.ops[i]);
    if (flags & TRANSFER) text += `, ${bytes(p.sizes[i])} from ${p.head.devices[p.kinds[k + 2]]} to ${p.head.devices[p.kinds[k + 3]]}`;
    else if (p.sizes[i] > 1) text += ` and ${p.sizes[i] - 1} more ops on ${p.head.devices[p.kinds[k + 2]]}`;
    else text += ` on ${p.head.devices[p.kinds[k + 2]]}`;
    return `${text}; ${p.head.groups[p.kinds[k]]}, ${["forward", "backward", "update", ""][flags & 3]}; from ${seconds(start)} for ${seconds(end - start)}${flags & CRITICAL ? "; on the critical path" : ""}`;
  }

  // Drawing ----------------------------------------------------------------

  let queued = false;
  function draw() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => { queued = false; paintAll(); });
  }

  // paintAll draws every panel. What it takes is in drawn, for those who measure.
  const drawn = [];
  function paintAll() {
    const began = performance.now();
    for (const p of panels) paint(p);
    drawn.push(performance.now() - began);
    if (drawn.length > 4096) drawn.splice(0, 2048);
  }

  function size(p) {
    const ratio = window.devicePixelRatio || 1, width = p.box.clientWidth;
    const w = Math.max(1, Math.round(width * ratio)), h = Math.round(p.height * ratio);
    if (p.canvas.width !== w || p.canvas.height !== h) {
      p.canvas.width = w; p.canvas.height = h;
      p.canvas.style.height = p.height + "px";
    }
    p.ratio = ratio; p.width = width; p.plot = Math.max(10, width - gutter - 8);
  }

  // firstIn returns the first span of row r that may end after time t.
  function firstIn(r, t) {
    let low = 0, high = r.starts.length;
    while (low < high) { const m = low + high >> 1; if (r.starts[m] < t - r.longest) low = m + 1; else high = m; }
    return low;
  }

  // strip computes the pixels of row r.
  function strip(p, r, columns, pixels, lane) {
    const scale = columns / (view.to - view.from), rgb = coloursOf(p), sum = p.sum;
    sum.fill(0, 0, 4 * columns);
    const { starts, ends, items } = r;
    for (let i = firstIn(r, view.from); i < starts.length && starts[i] < view.to; i++) {
      let a = (starts[i] - view.from) * scale, b = (ends[i] - view.from) * scale;
      if (b <= 0) continue;
      if (b - a > 5) b -= 1; // a seam between neighbours
      a = Math.max(0, a); b = Math.min(columns, b);
      const k = 3 * items[i], red = rgb[k], green = rgb[k + 1], blue = rgb[k + 2];
      let x = a | 0;
      const last = Math.min(columns - 1, b | 0);
      for (; x <= last; x++) {
        const part = Math.min(b, x + 1) - Math.max(a, x);
        if (part <= 0) continue;
        const at = 4 * x;
        sum[at] += part * red; sum[at + 1] += part * green; sum[at + 2] += part * blue; sum[at + 3] += part;
      }
    }
    for (let x = 0; x < columns; x++) {
      const at = 4 * x, part = sum[at + 3], cover = Math.min(1, part), rest = 1 - cover, k = part > 0 ? cover / part : 0;
      pixels[at] = sum[at] * k + lane[0] * rest; pixels[at + 1] = sum[at + 1] * k + lane[1] * rest; pixels[at + 2] = sum[at + 2] * k + lane[2] * rest; pixels[at + 3] = 255;
    }
  }

  function paint(p) {
    size(p);
    const g = p.canvas.getContext("2d", { alpha: false }), columns = Math.max(1, Math.round(p.plot * p.ratio)), rows = p.rows.length;
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.fillStyle = theme.bg;
    g.fillRect(0, 0, p.canvas.width, p.canvas.height);
    if (!p.strips || p.strips.width !== columns || p.strips.height !== rows) {
      p.strips = document.createElement("canvas");
      p.strips.width = columns; p.strips.height = rows;
      p.image = p.strips.getContext("2d").createImageData(columns, rows);
      p.sum = new Float32Array(4 * columns);
    }
    const lane = parse(theme.lane);
    p.rows.forEach((r, k) => strip(p, r, columns, p.image.data.subarray(4 * columns * k, 4 * columns * (k + 1)), lane));
    p.strips.getContext("2d").putImageData(p.image, 0, 0);
    g.imageSmoothingEnabled = false;
    const left = Math.round(gutter * p.ratio);
    p.rows.forEach((r, k) => g.drawImage(p.strips, 0, k, columns, 1, left, Math.round(r.y * p.ratio), columns, Math.round(r.height * p.ratio)));
    g.setTransform(p.ratio, 0, 0, p.ratio, 0, 0);
    const x = t => gutter + (t - view.from) / (view.to - view.from) * p.plot;
    for (const r of p.rows) {
      if (r.memory) memory(p, g, r, columns);
      label(p, g, r);
    }
    axis(p, g, x);
    names(p, g, x);
    mark(p, g, x);
  }

  // memory fills the bytes of a device, the most in each column, and draws the limit.
  function memory(p, g, r, columns) {
    const m = r.memory, at = m.at, n = m.samples, top = r.y + r.height, height = memoryHeight - 2, y = v => top + height - height * Math.min(1, v / p.memoryTop);
    const step = Math.max(1, Math.round(p.ratio)), scale = (view.to - view.from) / columns;
    let low = 0, high = n;
    while (low < high) { const k = low + high >> 1; if (at[2 * k] <= view.from) low = k + 1; else high = k; }
    let k = low, held = low > 0 ? at[2 * low - 1] : 0;
    g.beginPath();
    g.moveTo(gutter, top + height);
    const end = p.head.step_time_s;
    for (let c = 0; c < columns; c += step) {
      const until = view.from + (c + step) * scale;
      let most = held;
      for (; k < n && at[2 * k] < until; k++) { held = at[2 * k + 1]; most = Math.max(most, held); }
      if (view.from + c * scale > end) most = held = 0;
      g.lineTo(gutter + c / p.ratio, y(most)); g.lineTo(gutter + (c + step) / p.ratio, y(most));
    }
    g.lineTo(gutter + p.plot, top + height);
    g.closePath();
    g.fillStyle = theme.accent; g.globalAlpha = 0.5; g.fill(); g.globalAlpha = 1;
    if (m.limit_bytes < p.memoryTop) {
      g.strokeStyle = theme.warn; g.setLineDash([6, 3]); g.beginPath(); g.moveTo(gutter, y(m.limit_bytes)); g.lineTo(gutter + p.plot, y(m.limit_bytes)); g.stroke(); g.setLineDash([]);
    }
  }

  function label(p, g, r) {
    g.textAlign = "right"; g.textBaseline = "middle";
    g.fillStyle = theme.text;
    g.font = r.device < 0 ? "10px system-ui, sans-serif" : "12px system-ui, sans-serif";
    if (p.rows[p.row] === r && document.activeElement === p.box) { g.fillStyle = theme.accent; g.font = "bold " + g.font; }
    g.fillText(clip(g, r.name, gutter - 12), gutter - 6, r.y + r.height / 2);
    if (r.memory) {
      g.font = "10px system-ui, sans-serif"; g.fillStyle = theme.faint;
      g.fillText(clip(g, `${bytes(r.memory.peak_bytes)} of ${bytes(r.memory.limit_bytes)}`, gutter - 12), gutter - 6, r.y + r.height + memoryHeight / 2);
    }
  }

  function clip(g, text, room) {
    if (g.measureText(text).width <= room) return text;
    let n = Math.min(text.length, Math.floor(room / 5));
    while (n > 1 && g.measureText(text.slice(0, n) + "…").width > room) n--;
    return text.slice(0, n) + "…";
  }

  // axis draws round times, the proven bound and the end of the step.
  function axis(p, g, x) {
    const room = Math.max(1, p.plot / 90), raw = (view.to - view.from) / room, power = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = power * [1, 2, 5, 10].find(k => k * power >= raw);
    g.font = "11px system-ui, sans-serif"; g.textAlign = "center"; g.textBaseline = "middle"; g.fillStyle = theme.faint; g.strokeStyle = theme.line; g.lineWidth = 1;
    for (let k = Math.ceil(view.from / step); k * step <= view.to; k++) {
      const at = Math.round(x(k * step)) + 0.5;
      g.beginPath(); g.moveTo(at, axisHeight - 5); g.lineTo(at, axisHeight - 1); g.stroke();
      g.fillText(seconds(+(k * step).toPrecision(12)), at, 9);
    }
    for (const [t, dash] of [[p.head.lower_bound_s, [3, 3]], [p.head.step_time_s, []]]) {
      if (!(t > view.from && t < view.to)) continue;
      g.strokeStyle = theme.text; g.setLineDash(dash); g.beginPath(); g.moveTo(x(t), axisHeight - 4); g.lineTo(x(t), p.height); g.stroke(); g.setLineDash([]);
    }
  }

  // names writes on spans of devices that are wide enough.
  function names(p, g, x) {
    const room = (view.to - view.from) / p.plot * 44;
    g.font = "10px system-ui, sans-serif"; g.textAlign = "left"; g.textBaseline = "middle";
    const rgb = coloursOf(p);
    for (const r of p.rows) {
      if (r.device < 0 || r.longest < room) continue;
      for (let i = firstIn(r, view.from); i < r.starts.length && r.starts[i] < view.to; i++) {
        if (r.ends[i] - r.starts[i] < room || r.ends[i] < view.from) continue;
        const a = Math.max(gutter, x(r.starts[i])), b = Math.min(gutter + p.plot, x(r.ends[i]));
        if (b - a < 44) continue;
        const k = r.items[i], light = 0.299 * rgb[3 * k] + 0.587 * rgb[3 * k + 1] + 0.114 * rgb[3 * k + 2];
        g.fillStyle = light > 140 ? "#000000" : "#ffffff";
        const path = name(p, p.ops[k]).split("/");
        g.fillText(clip(g, path[path.length - 1], b - a - 6), a + 3, r.y + r.height / 2);
      }
    }
  }

  function mark(p, g, x) {
    if (p.selected < 0) return;
    const r = p.rows[p.row], a = Math.max(gutter, x(r.starts[p.selected])), b = Math.min(gutter + p.plot, Math.max(x(r.ends[p.selected]), x(r.starts[p.selected]) + 2));
    if (b <= a) return;
    g.strokeStyle = theme.text; g.lineWidth = 2; g.strokeRect(a, r.y, b - a, r.height); g.lineWidth = 1;
  }

  // Moving -----------------------------------------------------------------

  // show shows the time from, to, moved so that it lies within the step.
  function show(from, to) {
    const length = Math.min(Math.max(to - from, view.whole * 1e-6), view.whole);
    from = Math.min(Math.max(0, from), view.whole - length);
    view.from = from; view.to = from + length;
    draw();
  }
  const pan = share => show(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));
  const zoom = (factor, at) => show(at - (at - view.from) * factor, at + (view.to - at) * factor);
  const middle = () => (view.from + view.to) / 2;

  function select(p, row, i, said) {
    p.row = row; p.selected = i;
    if (i >= 0) p.said.textContent = describe(p, p.rows[row].items[i]);
    else if (said) p.said.textContent = said;
    draw();
  }

  const toRow = (p, k) => { const row = Math.min(p.rows.length - 1, Math.max(0, k)), r = p.rows[row]; select(p, row, -1, `${r.name}: ${r.starts.length} ${r.device < 0 ? "transfers" : "spans"}`); };

  // next selects the span d further on, from the middle of the view where none is.
  function next(p, d) {
    const r = p.rows[p.row];
    if (!r.starts.length) return;
    let i = p.selected + d;
    if (p.selected < 0) for (i = firstIn(r, view.from); i < r.starts.length - 1 && r.ends[i] <= view.from; i++);
    i = Math.min(r.starts.length - 1, Math.max(0, i));
    if (r.ends[i] > view.to || r.starts[i] < view.from) { const half = (view.to - view.from) / 2; show(r.starts[i] - half, r.starts[i] + half); }
    select(p, p.row, i);
  }

  const actions = { left: () => pan(-0.2), right: () => pan(0.2), in: () => zoom(1 / 1.5, middle()), out: () => zoom(1.5, middle()), whole: () => show(0, view.whole) };

  function key(p, e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const fine = e.shiftKey ? 0.5 : 0.05;
    switch (e.key) {
      case "ArrowLeft": pan(-fine); break;
      case "ArrowRight": pan(fine); break;
      case "ArrowUp": toRow(p, p.row - 1); break;
      case "ArrowDown": toRow(p, p.row + 1); break;
      case "+": case "=": actions.in(); break;
      case "-": case "_": actions.out(); break;
      case "0": case "Home": actions.whole(); break;
      case "End": show(view.whole - (view.to - view.from), view.whole); break;
      case "[": next(p, -1); break;
      case "]": next(p, 1); break;
      case "Enter": if (p.selected >= 0) { const r = p.rows[p.row], a = r.starts[p.selected], b = r.ends[p.selected]; show(a - 2 * (b - a), b + 2 * (b - a)); } break;
      case "Escape": select(p, p.row, -1); break;
      default: return;
    }
    e.preventDefault();
  }

  // hit returns the row and the span below a point of the panel.
  function hit(p, e) {
    const box = p.box.getBoundingClientRect(), y = e.clientY - box.top, px = (view.to - view.from) / p.plot, t = view.from + (e.clientX - box.left - gutter) * px;
    const row = p.rows.findIndex(r => y >= r.y && y < r.y + r.height);
    if (row < 0 || e.clientX - box.left < gutter) return [row, -1];
    const r = p.rows[row];
    let best = -1, away = 3 * px;
    for (let i = firstIn(r, t - away); i < r.starts.length && r.starts[i] < t + away; i++) {
      const d = t < r.starts[i] ? r.starts[i] - t : t > r.ends[i] ? t - r.ends[i] : 0;
      if (d < away || d === 0 && best < 0) { best = i; away = d; }
    }
    return [row, best];
  }

  function listen(p) {
    let from = null;
    p.box.addEventListener("keydown", e => key(p, e));
    p.box.addEventListener("focus", draw);
    p.box.addEventListener("blur", draw);
    p.box.addEventListener("pointerdown", e => { from = { x: e.clientX, at: view.from, moved: false }; p.box.setPointerCapture(e.pointerId); });
    p.box.addEventListener("pointermove", e => {
      if (from) {
        const moved = e.clientX - from.x, px = (view.to - view.from) / p.plot;
        from.moved = from.moved || Math.abs(moved) > 3;
        show(from.at - moved * px, from.at - moved * px + view.to - view.from);
        return;
      }
      const [row, i] = hit(p, e);
      if (row >= 0 && i >= 0 && (row !== p.row || i !== p.selected)) select(p, row, i);
    });
    p.box.addEventListener("pointerup", e => {
      if (from && !from.moved) { const [row, i] = hit(p, e); if (row >= 0) select(p, row, i, p.rows[row].name); }
      from = null;
    });
    p.box.addEventListener("pointercancel", () => { from = null; });
    p.box.addEventListener("dblclick", e => zoom(1 / 3, view.from + (e.clientX - p.box.getBoundingClientRect().left - gutter) / p.plot * (view.to - view.from)));
    p.box.addEventListener("wheel", e => {
      const t = view.from + (e.clientX - p.box.getBoundingClientRect().left - gutter) / p.plot * (view.to - view.from);
      if (e.ctrlKey) zoom(Math.exp(e.deltaY / 200), t);
      else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan(e.deltaX / p.plot);
      else return;
      e.preventDefault();
    }, { passive: false });
    new ResizeObserver(draw).observe(p.box);
  }

  async function start() {
    readTheme();
    for (const box of document.querySelectorAll(".timeline")) {
      const said = document.getElementById(box.id + "-said");
      try {
        const p = Object.assign(await read(document.getElementById(box.id + "-data").textContent), { box, said, canvas: box.querySelector("canvas") });
        panels.push(p);
        listen(p);
        said.textContent = `${p.head.spans} spans on ${p.rows.length} rows in ${seconds(p.head.step_time_s)}.` + (p.head.joined_s > 0 ? ` Spans with pauses below ${seconds(p.head.joined_s)} are joined.` : "");
      } catch (e) {
        said.textContent = "The timeline cannot be drawn: " + e.message + ". It needs a browser of 2023 or later.";
        throw e;
      }
    }
    const group = panels.length ? panels[0].head.group : "layer";
    for (const o of document.querySelectorAll("[data-colour] option[value=group]")) o.textContent = "by " + group;
    view.whole = Math.max(...panels.map(p => p.head.step_time_s), 1e-12) * 1.01;
    show(0, view.whole);
    for (const b of document.querySelectorAll("[data-do]")) b.addEventListener("click", actions[b.dataset.do]);
    for (const s of document.querySelectorAll("[data-colour]")) s.addEventListener("change", () => { view.colour = s.value; draw(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readTheme(); draw(); });
    const paper = on => { document.documentElement.classList.toggle("paper", on); readTheme(); paintAll(); };
    addEventListener("beforeprint", () => paper(true));
    addEventListener("afterprint", () => paper(false));
    paintAll();
    performance.mark("placer-ready");
    document.documentElement.dataset.ready = "true";
  }

  window.placer = { panels, view, drawn, pan, show };
  start();
})();
