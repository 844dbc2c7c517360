"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const svgNS = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  const digits = (value) => (typeof value === "number" ? value.toFixed(4) : "∞");

  // Light and dark.
  const root = document.documentElement;
  const theme = byId("theme");
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const nameTheme = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  nameTheme();

  // Tips of marks, by pointer and by keyboard.
  const tip = byId("tip");
  const showTip = (mark) => {
    const box = mark.getBoundingClientRect();
    tip.textContent = mark.dataset.tip;
    const left = Math.min(box.right + 8, root.clientWidth - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left) + scrollX}px`;
    tip.style.top = `${box.top + scrollY - tip.offsetHeight - 6}px`;
    tip.style.visibility = "visible";
  };
  const hideTip = () => { tip.style.visibility = "hidden"; };
  for (const [type, act] of [["pointerover", showTip], ["focusin", showTip]]) {
    document.addEventListener(type, (event) => {
      const mark = event.target.closest("[data-tip]");
      if (mark) act(mark); else hideTip();
    });
  }
  document.addEventListener("focusout", hideTip);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });

  // Arrow keys move between the bins of a triangle.
  for (const group of document.querySelectorAll("[data-roving]")) {
    const marks = [...group.querySelectorAll("[tabindex]")];
    group.addEventListener("keydown", (event) => {
      const at = marks.indexOf(document.activeElement);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      let next = at + step;
      if (event.key === "Home") next = 0;
      if (event.key === "End") next = marks.length - 1;
      if (at < 0 || Number.isNaN(next)) return;
      event.preventDefault();
      next = (next + marks.length) % marks.length;
      marks[at].tabIndex = -1;
      marks[next].tabIndex = 0;
      marks[next].focus();
    });
  }

  // Sortable tables.
  const valueOf = (row, column) => {
    const text = row.cells[column].dataset.value;
    return text === "-inf" ? -Infinity : text === "inf" ? Infinity : Number(text);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.setAttribute("aria-sort", "none"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows];
      rows.sort((a, b) => (up ? 1 : -1) * (valueOf(a, column) - valueOf(b, column)));
      table.tBodies[0].append(...rows);
    }));
  }

  // Copy buttons.
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      const code = button.parentElement.querySelector("code");
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = "Press Ctrl+C";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
  }

  // The slider moves diagram, map, scores and the mark on the path together.
  const plane = { left: 44, top: 10, width: 286, height: 240 };
  const across = (x) => (plane.left + x * plane.width).toFixed(1);
  const down = (y) => (plane.top + (1 - y) * plane.height).toFixed(1);
  const showStage = (i) => {
    const stage = data.path.stages[i];
    byId("stage-bins").textContent = stage.n_bins;
    byId("stage").setAttribute("aria-valuetext", `${stage.n_bins} bins`);
    for (const cell of document.querySelectorAll("[data-score]")) {
      cell.textContent = digits(stage[cell.dataset.score]);
    }
    const heaviest = Math.max(...stage.weight);
    byId("stage-marks").replaceChildren(...stage.forecast.map((forecast, k) => {
      const mark = document.createElementNS(svgNS, "circle");
      mark.setAttribute("cx", across(forecast));
      mark.setAttribute("cy", down(stage.rate[k]));
      mark.setAttribute("r", (2.5 + 6 * Math.sqrt(stage.weight[k] / heaviest)).toFixed(1));
      mark.setAttribute("class", "dot after");
      mark.dataset.tip = `calibrated ${forecast.toFixed(3)}, observed ${stage.rate[k].toFixed(3)}, `
        + `weight ${Math.round(stage.weight[k]).toLocaleString("en")}`;
      return mark;
    }));
    const here = document.querySelector("#path-chart .here");
    const place = JSON.parse(here.dataset.places)[i];
    if (place) { here.setAttribute("cx", place[0]); here.setAttribute("cy", place[1]); }
    if (data.path.node_of_bin) showMap(data.path.node_of_bin[i]);
  };
  const showMap = (nodes) => {
    const map = byId("stage-map");
    if (data.colours) {
      for (const cell of map.querySelectorAll("[data-bin]")) {
        cell.setAttribute("fill", data.colours[nodes[cell.dataset.bin]]);
      }
    } else if (data.path.cuts) {
      const [x0, x1] = [Number(map.dataset.x0), Number(map.dataset.x1)];
      const edges = [x0, ...data.path.cuts, x1].map((x) => Math.min(1, Math.max(0, (x - x0) / (x1 - x0))));
      const steps = nodes.map((node, b) => {
        const y = down(data.path.node_values[node][1]);
        return `${across(edges[b])},${y} ${across(edges[b + 1])},${y}`;
      });
      map.querySelector("[data-role=map]").setAttribute("points", steps.join(" "));
    }
  };
  if (data.path) {
    byId("stage").addEventListener("input", (event) => showStage(Number(event.target.value)));
    showStage(data.path.stages.length - 1);
  }

  // The ROC surface, turned by dragging, by arrow keys and by buttons.
  if (data.surface) {
    const surface = byId("surface");
    let [turn, tilt] = [0.7, 0.45];
    const project = ([x, y, z]) => {
      const [a, b, c] = [x - 0.5, y - 0.5, z - 0.5];
      const side = a * Math.cos(turn) - b * Math.sin(turn);
      const depth = a * Math.sin(turn) + b * Math.cos(turn);
      return [200 + 215 * side, 185 - 215 * (c * Math.cos(tilt) - depth * Math.sin(tilt))];
    };
    const at = (point) => project(point).map((v) => v.toFixed(1)).join(",");
    const axes = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
    const draw = () => {
      surface.querySelector(".hull").setAttribute("d", data.surface.edges
        .map((e) => `M${at(e.slice(0, 3))}L${at(e.slice(3))}`).join(""));
      for (const of of ["before", "after"]) {
        const points = data.surface.points[of] || [];
        surface.querySelector(`.points.${of}`).setAttribute("d", points.map((p) => `M${at(p)}h0`).join(""));
      }
      surface.querySelector(".axes").setAttribute("d", axes.map((end) => `M${at([0, 0, 0])}L${at(end)}`).join(""));
      axes.forEach((end, k) => {
        const label = surface.querySelector(`[data-axis="${k}"]`);
        const [x, y] = project(end.map((v) => 0.5 + (v - 0.5) * 1.12));
        const name = data.surface.names[k];
        label.textContent = name.length > 22 ? `${name.slice(0, 21)}…` : name;
        const half = 3.2 * label.textContent.length;  // of its width, about
        label.setAttribute("x", Math.min(400 - half, Math.max(half, x)).toFixed(1));
        label.setAttribute("y", Math.min(352, Math.max(12, y)).toFixed(1));
      });
    };
    const turnBy = (dx, dy) => {
      turn += dx;
      tilt = Math.min(1.5, Math.max(-0.2, tilt + dy));
      draw();
    };
    surface.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-0.1, 0], ArrowRight: [0.1, 0], ArrowUp: [0, 0.1], ArrowDown: [0, -0.1] }[event.key];
      if (step) { event.preventDefault(); turnBy(...step); }
    });
    surface.addEventListener("pointermove", (event) => {
      if (event.buttons) turnBy(event.movementX / 150, event.movementY / 150);
    });
    for (const button of document.querySelectorAll("[data-turn]")) {
      button.addEventListener("click", () => turnBy(0.15 * Number(button.dataset.turn), 0));
    }
    draw();
  }
})();
