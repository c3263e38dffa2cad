// Charts with axes and a cursor, drawn from the rows of the table beside each.
"use strict";

(() => {
  const HEIGHT = 240;
  const STEPS = { bytes: ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] };
  const BEFORE_DASH = [4, 4];
  const HOUR = 3600;
  const DAY = 86400;
  const DAYS = [1, 2, 3, 5, 7, 10, 15, 30, 60, 90, 180, 365].map((n) => n * DAY);
  // Steps of an axis that read well in its unit; uPlot knows those of numbers.
  const INCREMENTS = {
    bytes: [0, 1, 2, 3, 4, 5].flatMap((power) =>
      [1, 2, 4, 5, 10, 20, 50, 100, 200, 256, 500, 512].map((n) => n * 1024 ** power)),
    seconds: [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18000],
    number: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 50000],
  };

  // Of a logarithmic axis, in seconds.
  const MAGNITUDES = {
    splits: (plot) => [0.01, 0.1, 1, 10, 60, 600, 3600, 36000].filter((n) => n <= plot.scales.y.max),
    filter: (_, splits) => splits,
  };

  function tick(unit, value) {
    if (unit === "bytes") {
      let power = 0;
      while (value >= 1024 && power < 5) [value, power] = [value / 1024, power + 1];
      return `${+value.toFixed(1)} ${STEPS.bytes[power]}`;
    }
    if (unit === "seconds") {
      if (value >= 3600) return `${+(value / 3600).toFixed(1)} h`;
      if (value >= 60) return `${+(value / 60).toFixed(1)} min`;
      return `${+value.toFixed(3)} s`;
    }
    return value.toLocaleString("en");
  }

  function moment(seconds, slot) {
    const fields = slot < DAY ? { hour: "2-digit", minute: "2-digit" } : { day: "numeric", month: "short" };
    return new Date(seconds * 1000).toLocaleString("en-GB", { timeZone: "UTC", ...fields });
  }

  // A canvas knows no variables: what an element has in the theme of now is asked for.
  function color(figure, name) {
    const probe = document.createElement("i");
    probe.className = `chart-color-${name}`;
    figure.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function rowsOf(figure) {
    const table = figure.parentElement.querySelector("table");
    return [...table.querySelectorAll("tbody tr")].reverse();
  }

  // Columns of time, value, ceiling, value before and part.
  function columnsOf(rows) {
    const points = rows.map((row) => row.dataset.point.split(" "));
    return [0, 1, 2, 3, 4].map((n) => points.map((each) => (each[n] === "-" ? null : Number(each[n]))));
  }

  function sentence(row) {
    const cells = [...row.cells].slice(1);
    const headings = row.closest("table").tHead.rows[0].cells;
    const values = cells.map((cell) => `${headings[cell.cellIndex].textContent}: ${cell.textContent}`);
    return `${row.cells[0].textContent}. ${values.join(", ")}`;
  }

  function linesOf(figure) {
    return (figure.dataset.lines || "").split(" ").filter(Boolean).map(Number);
  }

  // Marked times lie behind everything, lines above it.
  function hooksOf(figure) {
    const stretches = [...figure.querySelectorAll(".chart-stretches li")].map((item) => item.dataset);
    const behind = (plot) => {
      const { ctx, bbox } = plot;
      ctx.fillStyle = color(figure, "stretch");
      for (const { begin, end } of stretches) {
        const from = Math.max(plot.valToPos(Number(begin), "x", true), bbox.left);
        const to = Math.min(plot.valToPos(Number(end), "x", true), bbox.left + bbox.width);
        if (to >= from) ctx.fillRect(from, bbox.top, Math.max(to - from, 2), bbox.height);
      }
    };
    const above = (plot) => {
      const { ctx, bbox } = plot;
      ctx.strokeStyle = color(figure, "ceiling");
      ctx.setLineDash([2, 3]);
      for (const line of linesOf(figure)) {
        const y = plot.valToPos(line, "y", true);
        ctx.beginPath();
        ctx.moveTo(bbox.left, y);
        ctx.lineTo(bbox.left + bbox.width, y);
        ctx.stroke();
      }
      ctx.setLineDash([]);
    };
    return { drawClear: [behind], draw: [above] };
  }

  function optionsOf(figure, times, width) {
    const gaps = times.slice(1).map((at, index) => at - times[index]);
    // A day begins at midnight; a single point at another time is of an hour.
    const slot = gaps.length ? Math.min(DAY, ...gaps) : times[0] % DAY ? HOUR : DAY;
    const unit = figure.dataset.chart;
    const ink = color(figure, "ink");
    const grid = { stroke: color(figure, "grid"), width: 1 };
    const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui, sans-serif" };
    // A line on bars is seen only if they are pale.
    const isCompared = columnsOf(rowsOf(figure))[3].some((before) => before !== null);
    const solid = color(figure, "value");
    const value = isCompared ? `color-mix(in srgb, ${solid} 45%, transparent)` : solid;
    const ceiling = color(figure, "ceiling");
    const part = color(figure, "part");
    const isDots = "dots" in figure.dataset;
    const bars = { width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [0.7, 40] }) };
    const drawnIn = (ink, size) =>
      isDots ? { paths: () => null, points: { show: true, size, fill: ink, stroke: ink } } : bars;
    const logarithmic = {
      distr: 3,
      range: (_, low, high) => [0.01, Math.max(high || 1, ...linesOf(figure)) * 1.2],
    };
    return {
      width,
      height: HEIGHT,
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false } },
      scales: {
        // uPlot adds a thousand days to a single point.
        x: { range: () => [times[0] - slot / 2, times[times.length - 1] + slot / 2] },
        y: isDots ? logarithmic : { range: (_, low, high) => [Math.min(low, 0), (high || 1) * 1.08] },
      },
      axes: [
        {
          ...axis,
          ...(slot < DAY ? {} : { incrs: DAYS }),
          values: (_, all) => all.map((at) => moment(at, slot)),
        },
        {
          ...axis,
          size: 80,
          ...(isDots ? MAGNITUDES : { incrs: INCREMENTS[unit] }),
          values: (_, all) => all.map((n) => tick(unit, n)),
        },
      ],
      series: [
        {},
        {
          label: "value",
          fill: value,
          stroke: value,
          ...drawnIn(value, 5),
        },
        { label: "ceiling", stroke: ceiling, width: 2, points: { size: 5 } },
        { label: "before", stroke: ink, width: 2, dash: BEFORE_DASH, points: { size: 5 } },
        { label: "part", fill: part, stroke: part, ...drawnIn(part, 7) },
      ],
    };
  }

  function draw(figure) {
    const rows = rowsOf(figure);
    const data = columnsOf(rows);
    if ("dots" in figure.dataset) data[1] = data[1].map((number) => Math.max(number, 0.01));
    const said = figure.querySelector(".chart-values");
    const picture = figure.querySelector("svg");
    const holder = document.createElement("div");
    holder.className = "chart-canvas";
    holder.tabIndex = 0;
    holder.setAttribute("role", "group");
    const name = figure.closest("section").querySelector("h3").textContent;
    const keys = "Arrow keys read the values, Enter opens the rows behind one.";
    holder.setAttribute("aria-label", `${name}. ${keys}`);
    picture.before(holder);
    picture.setAttribute("hidden", "");

    let chosen = -1;
    function choose(index) {
      if (index === chosen || !rows[index]) return;
      chosen = index;
      said.textContent = sentence(rows[index]);
    }
    function open() {
      rows[chosen]?.querySelector("a")?.click();
    }

    let plot = null;
    function build() {
      plot?.destroy();
      const options = optionsOf(figure, data[0], holder.clientWidth);
      options.hooks = { ...hooksOf(figure), setCursor: [(u) => u.cursor.idx != null && choose(u.cursor.idx)] };
      plot = new uPlot(options, data, holder);
      plot.over.addEventListener("click", open);
    }
    holder.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
      if (event.key === "Enter") open();
      if (!(event.key in moves)) return;
      event.preventDefault();
      const from = chosen < 0 ? rows.length : chosen;
      const index = Math.max(0, Math.min(rows.length - 1, from + moves[event.key]));
      const left = plot.valToPos(data[0][index], "x");
      plot.setCursor({ left, top: 1 });
      choose(index);
    });
    build();
    new ResizeObserver(() => {
      if (holder.clientWidth) plot.setSize({ width: holder.clientWidth, height: HEIGHT });
    }).observe(holder);
    for (const asked of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(asked).addEventListener("change", build);
    }
  }

  function drawAll(within) {
    for (const figure of within.querySelectorAll("[data-chart]:not([data-drawn])")) {
      figure.dataset.drawn = "";
      draw(figure);
    }
  }
  // The page is painted first, with the pictures that are in it.
  requestAnimationFrame(() => setTimeout(() => drawAll(document)));
  document.addEventListener("htmx:load", (event) => drawAll(event.target));
})();
