"use strict";
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const svgNS = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);

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
  for (const type of ["pointerover", "focusin"]) {
    document.addEventListener(type, (event) => {
      const mark = event.target.closest("[data-tip]");
      if (mark) showTip(mark); else hideTip();
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
  const valueOf = (row, column) => Number(row.cells[column].dataset.value.replace("inf", "Infinity"));
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
  const scales = { linear: (p) => p, log: Math.log, logit: (p) => Math.log(p / (1 - p)) };
  const { scale, low, high } = data.axis;
  const [start, end] = [low, high].map(scales[scale]);
  const place = (p) => (scales[scale](Math.min(high, Math.max(low, p))) - start) / (end - start);
  const across = (x) => (plane.left + x * plane.width).toFixed(1);
  const down = (y) => (plane.top + (1 - y) * plane.height).toFixed(1);
  const showStage = (i) => {
    const stage = data.path.stages[i];
    byId("stage-bins").textContent = stage.n_bins;
    byId("stage").setAttribute("aria-valuetext", `${stage.n_bins} bins`);
    for (const cell of document.querySelectorAll("[data-score]")) {
      cell.textContent = stage[cell.dataset.score].toFixed(4);
    }
    const heaviest = Math.max(...stage.weight);
    byId("stage-marks").replaceChildren(...stage.forecast.map((forecast, k) => {
      const mark = document.createElementNS(svgNS, "circle");
      mark.setAttribute("cx", across(place(forecast)));
      mark.setAttribute("cy", down(place(stage.rate[k])));
      mark.setAttribute("r", (2.5 + 6 * Math.sqrt(stage.weight[k] / heaviest)).toFixed(1));
      mark.setAttribute("class", "dot after");
      mark.dataset.tip = `calibrated ${forecast.toFixed(3)}, observed ${stage.rate[k].toFixed(3)}, `
        + `weight ${Math.round(stage.weight[k]).toLocaleString("en")}`;
      return mark;
    }));
    const here = document.querySelector("#path-chart .here");
    const [cx, cy] = JSON.parse(here.dataset.places)[i];
    here.setAttribute("cx", cx);
    here.setAttribute("cy", cy);
    if (data.path.node_of_bin) showMap(data.path.node_of_bin[i]);
  };
  const showMap = (nodes) => {
    const map = byId("stage-map");
    if (data.colours) {
      for (const cell of map.querySelectorAll("[data-bin]")) {
        cell.setAttribute("fill", data.colours[nodes[cell.dataset.bin]]);
      }
    } else if (data.path.cuts) {
      const [x0, x1] = [Number(map.dataset.x0 ?? 0), Number(map.dataset.x1 ?? 1)];
      const share = (x) => Math.min(1, Math.max(0, (x - x0) / (x1 - x0)));
      const edges = [x0, ...data.path.cuts, x1].map("x0" in map.dataset ? share : place);
      const steps = nodes.map((node, b) => {
        const y = down(place(data.path.node_values[node][1]));
        return `${across(edges[b])},${y} ${across(edges[b + 1])},${y}`;
      });
      map.querySelector("[data-role=map]").setAttribute("points", steps.join(" "));
    }
  };
  if (data.path) {
    byId("stage").addEventListener("input", (event) => showStage(Number(event.target.value)));
    showStage(data.path.stages.length - 1);
  }
})();
