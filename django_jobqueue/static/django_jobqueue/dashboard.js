/* Brings the dashboard up to date in place. Without it the page is the same, as of when it was loaded. */
"use strict";

(() => {
  const root = document.getElementById("jobqueue-dashboard");
  if (!root) {
    return;
  }
  const content = root.querySelector(".jobqueue-content");
  const bar = root.querySelector(".jobqueue-refresh");
  const button = bar.querySelector("button");
  const status = bar.querySelector("[role=status]");
  const interval = Number(root.dataset.refresh) * 1000;
  let timer = null;
  let paused = false;
  let asking = null;
  let failures = 0;

  const address = () => {
    const url = new URL(window.location.href);
    url.searchParams.set("part", "content");
    return url;
  };

  /* What the person has opened, chosen or scrolled to stays so. */
  const replace = (html) => {
    const opened = [...content.querySelectorAll("details[open]")].map((one) => one.id);
    const places = [...content.querySelectorAll(".jobqueue-scroll")].map((one) => [one.id, one.scrollLeft, one.scrollTop]);
    const focused = content.contains(document.activeElement) ? document.activeElement.id : "";
    content.innerHTML = html;
    opened.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
    places.forEach(([id, left, top]) => document.getElementById(id)?.scrollTo(left, top));
    if (focused) {
      document.getElementById(focused)?.focus({ preventScroll: true });
    }
  };

  const isReading = () => {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && content.contains(selection.anchorNode);
  };

  const say = (text) => {
    if (status.textContent !== text) {
      status.textContent = text;
    }
  };

  const plan = (delay) => {
    clearTimeout(timer);
    timer = paused || document.hidden ? null : setTimeout(look, delay);
  };

  const look = async () => {
    if (isReading()) {
      plan(interval);
      return;
    }
    const begun = performance.now();
    asking = new AbortController();
    try {
      const answer = await fetch(address(), { credentials: "same-origin", signal: asking.signal });
      if (answer.redirected || answer.status === 403) {
        say(root.dataset.left);
        paused = true;
        return;
      }
      if (!answer.ok) {
        throw new Error(String(answer.status));
      }
      const html = await answer.text();
      if (!paused && !document.hidden) {
        replace(html);
      }
      failures = 0;
      say("");
    } catch (error) {
      if (error.name === "AbortError") {
        return;
      }
      failures += 1;
      say(root.dataset.away);
    }
    /* A server that takes its time is asked less often. */
    plan(Math.min(Math.max(interval, 10 * (performance.now() - begun)) * 2 ** Math.min(failures, 4), 120000));
  };

  const halt = () => {
    clearTimeout(timer);
    asking?.abort();
  };

  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? button.dataset.resume : button.dataset.pause;
    button.setAttribute("aria-pressed", String(paused));
    if (paused) {
      halt();
    } else {
      look();
    }
  });

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      halt();
    } else if (!paused) {
      look();
    }
  });

  bar.hidden = false;
  plan(interval);
})();
