"use strict";
(() => {
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
})();
