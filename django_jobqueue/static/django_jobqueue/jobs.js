/* Shows how the jobs of a page come on, without a reload; rests while nobody looks at the page. */
"use strict";
{
  const EVERY = 2000;
  const ID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
  const LIVE = ".jobqueue-pending, .jobqueue-running";

  const fill = (cell, html) => {
    if (cell && cell.innerHTML !== html) cell.innerHTML = html; // the server has escaped it
  };

  const every = (look) => {
    let timer = null;
    const tick = async () => {
      timer = null;
      if (document.hidden) return;
      let goesOn = true;
      try {
        goesOn = await look();
      } catch {
        // Away for a moment, or logged out: what stands there stays.
      }
      if (goesOn && timer === null) timer = setTimeout(tick, EVERY);
    };
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && timer === null) tick();
    });
    timer = setTimeout(tick, EVERY);
  };

  const ask = async (address) => {
    const answer = await fetch(address, { headers: { Accept: "application/json" }, redirect: "error" });
    if (!answer.ok) throw new Error(String(answer.status));
    return answer.json();
  };

  const followList = (list) => {
    const rows = new Map();
    for (const row of list.querySelectorAll("tbody tr")) {
      const link = row.querySelector("th a[href]");
      const found = link && ID.exec(link.getAttribute("href"));
      if (found && row.querySelector(LIVE)) rows.set(found[0], row);
    }
    if (!rows.size) return;
    every(async () => {
      const jobs = await ask(`${list.dataset.live}?ids=${[...rows.keys()].join(",")}`);
      for (const [id, row] of rows) {
        const job = jobs[id];
        if (!job) continue;
        for (const [name, html] of Object.entries(job.cells)) fill(row.querySelector(`.field-${name}`), html);
        if (!job.is_live) rows.delete(id);
      }
      return rows.size > 0;
    });
  };

  const followJob = (page) => {
    let { state } = page.dataset; // as the page was made
    every(async () => {
      const [job] = Object.values(await ask(page.dataset.live));
      if (!job) return false;
      if (job.state !== state) await renew(page);
      else fill(page.querySelector(".jobqueue-badge"), job.cells.status);
      state = job.state;
      return job.is_live;
    });
  };

  const renew = async (page) => {
    const answer = await fetch(location.href);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(".jobqueue-job");
    if (fresh && !page.contains(document.activeElement)) page.replaceChildren(...fresh.childNodes);
    else if (fresh) {
      for (const part of [".jobqueue-head", ".jobqueue-timeline"]) {
        page.querySelector(part).replaceWith(fresh.querySelector(part));
      }
    }
  };

  for (const list of document.querySelectorAll(".jobqueue-list[data-live]")) followList(list);
  for (const page of document.querySelectorAll(".jobqueue-job[data-live]")) followJob(page);
}
