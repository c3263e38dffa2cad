// What pages gain with scripts. Without them every page still works.
"use strict";

(() => {
  const COPIED_MS = 1600;
  const PIECES_KEPT = 600;

  async function copy(text) {
    // The clipboard is for secure pages; on plain http a selection has to do.
    if (navigator.clipboard) {
      await navigator.clipboard.writeText(text);
      return;
    }
    const holder = document.createElement("textarea");
    holder.value = text;
    holder.className = "visually-hidden";
    document.body.append(holder);
    holder.select();
    document.execCommand("copy");
    holder.remove();
  }

  function showCopyButtons(root) {
    for (const button of root.querySelectorAll("button[data-copy][hidden]")) {
      button.hidden = false;
    }
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    await copy(button.dataset.copy);
    button.classList.add("is-copied");
    const icon = button.querySelector("use");
    const label = button.querySelector("svg");
    const before = [icon.getAttribute("href"), label.getAttribute("aria-label")];
    icon.setAttribute("href", before[0].replace(/#.*/, "#done"));
    label.setAttribute("aria-label", "Copied");
    setTimeout(() => {
      button.classList.remove("is-copied");
      icon.setAttribute("href", before[0]);
      label.setAttribute("aria-label", before[1]);
    }, COPIED_MS);
  });

  // A second click while the first is on its way asks for nothing new.
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("form[data-once]")) return;
    const buttons = event.target.querySelectorAll("button[type=submit]");
    setTimeout(() => buttons.forEach((button) => (button.disabled = true)));
  });
  // Going back shows the page as it was left, with its buttons disabled.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });

  // The effect beside a form judges it anew with each letter.
  document.addEventListener("input", (event) => {
    const form = event.target.closest('[hx-target="#effect"]');
    form?.querySelectorAll(".errorlist, .notice-error").forEach((it) => it.remove());
    form?.querySelectorAll(".field-wrong").forEach((it) => it.classList.remove("field-wrong"));
  });

  // A slider shows no number of its own.
  document.addEventListener("input", (event) => {
    const shown = document.querySelector(`output[data-value-of="${event.target.id}"]`);
    if (event.target.id && shown) shown.value = event.target.value;
  });

  // Pages that poll say when they cannot, and when they can again.
  function showConnection(isLost) {
    document.getElementById("connection-lost").hidden = !isLost;
  }
  document.addEventListener("htmx:sendError", () => showConnection(true));
  document.addEventListener("htmx:responseError", () => showConnection(true));
  document.addEventListener("htmx:afterOnLoad", () => showConnection(false));

  // A log that was read to its end stays at its end while it grows.
  let isAtEnd = true;
  const log = () => document.querySelector("[data-follow]");
  document.addEventListener("htmx:beforeSwap", () => {
    const shown = log();
    if (!shown) return;
    isAtEnd = shown.scrollHeight - shown.scrollTop - shown.clientHeight < 40;
  });
  document.addEventListener("htmx:afterSettle", () => {
    if (!log() || !isAtEnd) return;
    // A log of hours would fill the memory; what scrolled away is on earlier pages.
    const pieces = log().querySelectorAll(".log-piece");
    for (const old of [...pieces].slice(0, -PIECES_KEPT)) old.remove();
    log().scrollTop = log().scrollHeight;
  });

  // Ctrl-K: a few letters lead to any page. Arrows move, Enter takes what is marked.
  const palette = document.getElementById("palette");
  let opensMarked = false;
  const places = () => [...palette.querySelectorAll(".places a")];
  const markedPlace = () => palette.querySelector(".places [aria-selected=true]");

  function openPalette() {
    if (palette.open) return;
    opensMarked = false;
    palette.showModal();
    const letters = palette.querySelector("input");
    letters.select();
    htmx.trigger(letters, "palette");
  }

  function markPlace(place) {
    markedPlace()?.setAttribute("aria-selected", "false");
    const letters = palette.querySelector("input");
    if (!place) return letters.removeAttribute("aria-activedescendant");
    place.setAttribute("aria-selected", "true");
    place.scrollIntoView({ block: "nearest" });
    letters.setAttribute("aria-activedescendant", place.id);
  }

  function moveInPalette(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const all = places();
    if (step && all.length) {
      event.preventDefault();
      const at = all.indexOf(markedPlace());
      markPlace(all[(at + step + all.length) % all.length]);
    } else if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault();
      opensMarked = true;
      openMarkedPlace();
    }
  }

  // Who types and presses Enter at once means what they typed, not what is shown yet.
  function openMarkedPlace() {
    const shown = palette.querySelector(".places");
    const isCurrent = shown?.dataset.for === palette.querySelector("input").value;
    if (opensMarked && isCurrent) markedPlace().click();
  }

  if (palette) {
    palette.addEventListener("htmx:afterSettle", () => {
      markPlace(markedPlace());
      openMarkedPlace();
    });
    palette.addEventListener("input", () => (opensMarked = false));
    for (const key of document.querySelectorAll("[data-palette-key]")) {
      key.textContent = /Mac/.test(navigator.platform) ? "⌘ K" : "Ctrl K";
      key.hidden = false;
    }
    document.addEventListener("keydown", (event) => {
      const isPlain = !event.altKey && !event.shiftKey;
      if ((event.ctrlKey || event.metaKey) && isPlain && event.key === "k") {
        event.preventDefault();
        openPalette();
      } else if (palette.open) {
        moveInPalette(event);
      }
    });
    document.addEventListener("click", (event) => {
      const link = event.target.closest("[data-palette]");
      if (link && !event.ctrlKey && !event.metaKey) {
        event.preventDefault();
        openPalette();
      } else if (event.target === palette) {
        palette.close(); // beside it
      }
    });
  }

  // Who wants that is told by the browser how a workspace came out. It asks once.
  const mayNotify = () => "Notification" in window && window.isSecureContext;

  function offerToNotify(root) {
    const offer = root.querySelector?.("[data-notify]");
    if (!offer || !mayNotify()) return;
    offer.hidden = Notification.permission !== "default";
  }

  document.addEventListener("click", async (event) => {
    const offer = event.target.closest("[data-notify]");
    if (!offer || !event.target.closest("button")) return;
    await Notification.requestPermission();
    offer.hidden = true;
  });
  document.addEventListener("htmx:load", (event) => {
    offerToNotify(event.target);
    const said = event.target.dataset.settled;
    if (!said || !mayNotify() || Notification.permission !== "granted") return;
    const icon = document.getElementById("favicon").href;
    new Notification(said, { tag: location.pathname, icon });
  });

  // Lists: one box chooses the whole page, and a line says how many are chosen.
  const boxes = () => [...document.querySelectorAll("input[name=chosen][type=checkbox]")];

  function countChosen() {
    const line = document.querySelector("[data-chosen-count]");
    const all = document.querySelector("[data-choose-all]");
    if (!line) return;
    const chosen = boxes().filter((box) => box.checked).length;
    line.textContent = chosen ? `With ${chosen} chosen:` : "None chosen yet.";
    if (!all) return;
    all.checked = chosen > 0 && chosen === boxes().length;
    all.indeterminate = chosen > 0 && !all.checked;
  }

  function beginChoosing() {
    const all = document.querySelector("[data-choose-all]");
    countChosen();
    if (all) all.hidden = false;
  }

  document.addEventListener("htmx:afterSettle", beginChoosing);
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-choose-all]")) {
      for (const box of boxes()) box.checked = event.target.checked;
    }
    if (event.target.matches("[data-choose-all], [name=chosen]")) countChosen();
  });

  // Escape puts away what a word means, until the pointer or the focus has left it.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const term of document.querySelectorAll(".term:is(:hover, :focus-within)")) {
      term.classList.add("is-dismissed");
      for (const leaving of ["pointerleave", "focusout"]) {
        const again = () => term.classList.remove("is-dismissed");
        term.addEventListener(leaving, again, { once: true });
      }
    }
  });

  // Times are shown in the zone that this browser is in, unless its reader chose one.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  const known = document.cookie.match(/(?:^|; )zone=([^;]*)/)?.[1];
  if (/^[\w+\/-]{1,64}$/.test(zone) && zone !== known) {
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax${secure}`;
  }

  document.addEventListener("htmx:load", (event) => showCopyButtons(event.target));
  showCopyButtons(document);
  offerToNotify(document);
  beginChoosing();
  if (log()) log().scrollTop = log().scrollHeight;
})();
