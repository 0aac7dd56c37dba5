/* Goes on with an operation, step by step, until it is over. Without this script a button does. */
"use strict";
{
  const form = document.getElementById("jobqueue-bulk");
  const pause = form.querySelector(".jobqueue-pause");
  const words = pause ? { stop: pause.textContent, goOn: pause.dataset.goOn } : {};
  let goesOn = "goesOn" in form.dataset;

  const tell = (facts) => {
    form.elements.operation.value = facts.operation;
    form.querySelector(".jobqueue-done").textContent = facts.done;
    form.querySelector(".jobqueue-refused").textContent = facts.refused;
    const bar = form.querySelector("progress");
    if (facts.is_over) {
      bar.max = bar.value = facts.total || 1;
      form.querySelector(".jobqueue-over").hidden = false;
      pause.hidden = true;
    } else if (facts.total) {
      bar.value = Math.min(facts.handled, facts.total);
    }
  };

  const step = async () => {
    const answer = await fetch(form.action || location.href, {
      method: "POST",
      body: new FormData(form),
      headers: { Accept: "application/json" },
      redirect: "error",
    });
    if (!answer.ok) throw new Error(String(answer.status));
    const facts = await answer.json();
    tell(facts);
    return facts.is_over;
  };

  const run = async () => {
    try {
      while (goesOn) if (await step()) return;
    } catch {
      // The button does the same, and shows what is the matter.
      form.querySelector(".jobqueue-go-on").hidden = false;
      pause.hidden = true;
    }
  };

  if (goesOn) {
    form.querySelector(".jobqueue-go-on").hidden = true;
    pause.hidden = false;
    pause.addEventListener("click", () => {
      goesOn = !goesOn;
      pause.textContent = goesOn ? words.stop : words.goOn;
      if (goesOn) run();
    });
    run();
  }
}
