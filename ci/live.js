// What `regretbook live` adds to a page: run it, watch the run, and a figure that follows sliders.
const live = JSON.parse(document.getElementById("rb-live").textContent);

async function ask(what, body) {
  const answer = await fetch(`${live.base}live/${what}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  return answer.json();
}

// The form below the title: run it, or let its time be estimated.
function runForm(panel) {
  const data = live.form;
  const run = rerun.make("button", { type: "submit", class: "rb-button rb-run" }, "Run");
  const plan = rerun.make("button", { type: "button", class: "rb-button" }, "Estimate the time");
  let latest = 0;
  const check = async () => {
    const mine = ++latest;
    const { errors = {} } = await ask("check", { page: data.page, values: form.values() });
    if (mine === latest) form.refuse(errors);
  };
  let later;
  const form = rerun.form(data, "rb-live", () => {
    clearTimeout(later);
    later = setTimeout(check, 150);
  });
  const start = async (kind) => {
    const body = { page: data.page, kind, profile: form.profile(), values: form.values() };
    const { errors = {}, error } = await ask("start", body);
    form.refuse(errors);
    said.textContent = error ?? "";
  };
  const said = rerun.make("span", { class: "rb-error", role: "alert" });
  form.element.append(rerun.make("p", { class: "rb-actions" }, run, " ", plan, " ", said));
  form.element.addEventListener("submit", () => start("run"));
  plan.addEventListener("click", () => start("plan"));
  const summary = rerun.make("summary", {}, "Run this page with other values");
  panel.append(rerun.make("details", { class: "rb-live-form" }, summary, form.element));
}

// A job: where it is, what it found so far, and its report when it has ended.
function card(job) {
  const box = rerun.make("section", { class: "rb-job", "data-job": job.id });
  const head = rerun.make("p", { class: "rb-job-head" });
  const bar = rerun.make("progress", { max: "1", "aria-label": `Progress of ${job.page}` });
  const cancel = rerun.make("button", { type: "button", class: "rb-button" }, "Cancel");
  cancel.addEventListener("click", () => ask("cancel", { id: job.id }));
  const where = rerun.make("p", { class: "rb-where" });
  const result = rerun.make("p", { class: "rb-result" });
  const verdicts = rerun.make("div", { class: "rb-job-verdicts rb-scroll", tabindex: "0" });
  const figures = rerun.make("div", { class: "rb-job-figures" });
  const report = rerun.make("div", { class: "rb-job-report" });
  const line = rerun.make("div", { class: "rb-job-line" }, bar, cancel);
  box.append(head, line, where, result, verdicts, figures, report);
  const shown = { verdicts: "", figures: new Set(), report: false };

  const update = (now) => {
    const ended = !["waiting", "running", "cancelling"].includes(now.state);
    const changes = Object.entries(now.changes).map(([name, value]) => `${name} = ${value}`);
    const what = now.kind === "plan" ? "Estimate" : "Run";
    head.replaceChildren(
      rerun.make("strong", {}, `${what} of ${now.page}: ${now.state}`),
      rerun.make("span", {}, changes.length ? ` with ${changes.join(", ")}` : " as published"),
    );
    box.dataset.state = now.state;
    line.hidden = ended;
    if (now.state === "waiting" || now.kind === "plan") bar.removeAttribute("value");
    else bar.value = now.progress ?? 0;
    const time = now.seconds ? `${rerun.duration(now.seconds)} so far` : "";
    where.textContent = ended ? now.said : [now.where, time].filter(Boolean).join(", ");
    where.hidden = !where.textContent;
    showVerdicts(now);
    Object.entries(now.figures ?? {}).forEach(([name, caption]) => showFigure(name, caption));
    if (ended && now.kind === "run") showResult(now);
  };

  const showVerdicts = ({ verdicts: found }) => {
    if (!found?.count || found.rows === shown.verdicts) return;
    shown.verdicts = found.rows;
    const titles = ["Claim", "Your run", "Published"];
    const head = rerun.make("tr", {}, ...titles.map((t) => rerun.make("th", { scope: "col" }, t)));
    const body = rerun.make("tbody");
    body.innerHTML = found.rows;
    const many = `Verdicts: ${found.count}, of which ${found.changed} changed`;
    const caption = rerun.make("caption", {}, many);
    const table = rerun.make("table", { class: "rb-live-verdicts" }, caption);
    table.append(rerun.make("thead", {}, head), body);
    verdicts.replaceChildren(table);
  };

  const showFigure = async (name, caption) => {
    if (shown.figures.has(name)) return;
    shown.figures.add(name);
    const answer = await fetch(`${live.base}live/figure/${job.id}/${name}`);
    if (!answer.ok) return;
    const canvas = rerun.make("div", { class: "rb-canvas", style: "max-width: 37rem" });
    canvas.innerHTML = await answer.text();
    const below = rerun.make("figcaption");
    below.innerHTML = caption;
    figures.append(rerun.make("figure", { class: "rb-figure" }, canvas, below));
  };

  const showResult = (now) => {
    if (shown.report || now.state !== "done") return;
    shown.report = true;
    const link = (name, text) => {
      const href = `${live.base}live/file/${job.id}/${name}`;
      return rerun.make("a", { href, target: "_blank" }, text);
    };
    const tables = Object.entries(now.files ?? {}).flatMap(([text, name]) => [" ", link(name, text)]);
    if (now.report) {
      result.append(link("report.html", "Open the report in a tab of its own"), ". ");
      const src = `${live.base}live/file/${job.id}/report.html`;
      const frame = rerun.make("iframe", { src, title: `Report of ${now.page}`, loading: "lazy" });
      report.append(frame);
      figures.replaceChildren(); // the report has them all
      verdicts.replaceChildren();
    }
    if (tables.length) result.append("Tables:", ...tables);
  };

  update(job);
  return { box, update };
}

// Jobs of this page in full, those of other pages as a line.
function watchJobs(panel) {
  const own = rerun.make("div", { class: "rb-jobs" });
  const others = rerun.make("p", { class: "rb-others", "aria-live": "polite" });
  panel.append(others, own);
  const cards = new Map();
  const update = (jobs) => {
    const mine = jobs.filter((job) => job.page === live.form?.page);
    mine.toReversed().forEach((job) => {
      if (cards.has(job.id)) cards.get(job.id).update(job);
      else {
        cards.set(job.id, card(job));
        own.prepend(cards.get(job.id).box);
      }
    });
    const busy = ["waiting", "running", "cancelling"];
    const rest = jobs.filter((job) => !mine.includes(job) && busy.includes(job.state));
    others.replaceChildren(
      ...rest.toReversed().flatMap((job, index) => [
        index ? ", " : "In the queue: ",
        rerun.make("a", { href: `${live.base}${job.file}.html` }, job.page),
        ` (${job.state}${job.progress ? `, ${Math.round(100 * job.progress)} %` : ""})`,
      ]),
    );
  };
  // A browser keeps few connections to one host: tabs that nobody looks at give theirs back.
  let source;
  const connect = () => {
    source?.close();
    source = null;
    if (document.hidden) return;
    source = new EventSource(`${live.base}live/events`);
    source.addEventListener("message", (event) => update(JSON.parse(event.data)));
  };
  document.addEventListener("visibilitychange", connect);
  connect();
}

// The small experiment of a chapter, above the parameters of its page: one request at a time, always with the newest values.
function quickFigure(panel) {
  const { page, question, sliders } = live.quick;
  const figure = rerun.make("div", { class: "rb-quick-figure" });
  const said = rerun.make("p", { class: "rb-where", "aria-live": "polite" }, "Computing …");
  const inputs = sliders.map((slider) => {
    const id = `rb-quick-${slider.name}`;
    const input = rerun.make("input", {
      type: "range", id, name: slider.name, min: slider.low, max: slider.high, step: slider.step,
    });
    input.value = slider.value;
    const output = rerun.make("output", { for: id }, String(slider.value));
    input.addEventListener("input", () => {
      output.textContent = input.value;
      draw();
    });
    const label = rerun.make("label", { for: id }, `${slider.meaning || slider.name} `, output);
    return { input, field: rerun.make("div", { class: "rb-slider" }, label, input) };
  });
  let busy = false;
  let again = false;
  const draw = async () => {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    figure.setAttribute("aria-busy", "true");
    const values = Object.fromEntries(inputs.map(({ input }) => [input.name, input.value]));
    const answer = await ask("quick", { page, values }).catch(() => ({ error: "nobody answers" }));
    busy = false;
    if (answer.figure) figure.innerHTML = answer.figure;
    said.textContent = answer.error
      ? `This did not work: ${answer.error}`
      : `Computed in ${Math.max(0.01, answer.seconds)} s.`;
    if (again) {
      again = false;
      draw();
    } else figure.setAttribute("aria-busy", "false");
  };
  const box = rerun.make(
    "section",
    { class: "rb-quick", id: "rb-quick", "aria-label": "Try it" },
    rerun.make("p", { class: "rb-question" }, rerun.make("strong", {}, "Try it. "), question),
    rerun.make("div", { class: "rb-sliders" }, ...inputs.map(({ field }) => field)),
    figure,
    said,
  );
  const parameters = document.querySelector("article .cell.tag_parameters");
  if (parameters) {
    parameters.before(box);
    const link = rerun.make("a", { href: "#rb-quick" }, "Try it with sliders");
    panel.append(rerun.make("p", { class: "rb-hint" }, link, ", further down on this page."));
  } else panel.append(box);
  draw();
}

document.addEventListener("DOMContentLoaded", () => {
  const title = document.querySelector("article h1");
  if (!title) return;
  const panel = rerun.make("div", { class: "rb-live-panel" });
  title.after(panel);
  if (live.form) runForm(panel);
  watchJobs(panel);
  if (live.quick) quickFigure(panel);
});
