// Theme: dark, light, or as the system has it. Runs before the first paint.
"use strict";
(() => {
  const order = ["system", "light", "dark"];
  const read = () => {
    try {
      const kept = localStorage.getItem("rollcall-theme");
      return order.includes(kept) ? kept : "system";
    } catch {
      return "system"; // storage is switched off
    }
  };
  const apply = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  apply(read());
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const show = () => (button.textContent = `Theme: ${read()}`);
    button.addEventListener("click", () => {
      const next = order[(order.indexOf(read()) + 1) % order.length];
      try {
        localStorage.setItem("rollcall-theme", next);
      } catch {
        // storage is switched off: for this page only
      }
      apply(next);
      show();
      dispatchEvent(new Event("themechange"));
    });
    show();
  });
})();
