// The scoreboard: choose rows, order them, and keep the choice in the address. Without this script
// the table stands as it is.
window.addEventListener("load", () => {
  const board = document.querySelector("#rb-board");
  const form = document.querySelector("#rb-filter");
  if (!board || !form) return;
  const rows = [...board.querySelectorAll(":scope > tbody > tr:not(.rb-part)")];
  const titles = [...board.querySelectorAll("tr.rb-part")];
  const bodies = [...board.tBodies];
  const home = new Map(bodies.map((body) => [body, [...body.rows]]));
  const keys = ["chapter", "nature", "question", "verdict", "scale", "data"];
  const severity = [...form.elements.verdict.options].map((option) => option.value);
  // What a row can be chosen and ordered by, of which it says most in words.
  const facts = new Map(
    rows.map((row) => {
      const kind = row.id ? row.cells[0].lastChild.lastChild : row.cells[1].lastChild;
      const [nature, question] = kind.textContent.trim().split(", ");
      const { scale = "none", data = "none", printed, measured } = row.dataset;
      const verdict = [...row.querySelectorAll(".rb-verdict")].pop().textContent;
      const name = row.id.replace("claim-", "") || row.querySelector("summary").textContent;
      const { chapter } = row.parentElement.dataset;
      return [row, { chapter, nature, question, verdict, scale, data, printed, measured, name }];
    }),
  );
  let order = null; // which column, and in which direction; none is the order of the book

  function chosen(row) {
    const show = form.elements.show.value === "all" || row.matches(".rb-headline");
    const words = form.elements.find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = words.length ? row.textContent.toLowerCase() : "";
    return (
      show &&
      words.every((word) => text.includes(word)) &&
      keys.every((key) => {
        const wanted = form.elements[key].value;
        return !wanted || facts.get(row)[key].split("|").includes(wanted);
      })
    );
  }

  function filter() {
    rows.forEach((row) => (row.hidden = !chosen(row)));
    for (const title of titles) {
      const mine = home.get(title.parentElement);
      title.hidden = order !== null || !mine.some((row) => row !== title && !row.hidden);
    }
    const shown = rows.filter((row) => !row.hidden).length;
    form.querySelector("output").textContent = `${shown} of ${rows.length} rows`;
  }

  function remember() {
    const query = new URLSearchParams(
      [...new FormData(form)].filter(([, value]) => value !== ""),
    ).toString();
    history.replaceState(null, "", (query ? `?${query}` : location.pathname) + location.hash);
  }

  const number = (text) => (text === undefined ? null : Number(text));
  const columns = {
    Claim: (row) => facts.get(row).name,
    Printed: (row) => number(facts.get(row).printed),
    Measured: (row) => number(facts.get(row).measured),
    Verdict: (row) => severity.indexOf(facts.get(row).verdict),
  };

  function compare(value, sign) {
    return (a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === null || y === null) return (x === null) - (y === null); // unknown ones go last
      return sign * (typeof x === "string" ? x.localeCompare(y) : x - y);
    };
  }

  function arrange() {
    for (const head of board.tHead.rows[0].cells) {
      const mine = order && head.textContent.trim() === order.column;
      if (mine) head.setAttribute("aria-sort", order.sign > 0 ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    if (order) {
      bodies[0].append(...[...rows].sort(compare(columns[order.column], order.sign)));
    } else {
      for (const [body, mine] of home) body.append(...mine);
    }
    filter();
  }

  for (const head of board.tHead.rows[0].cells) {
    const column = head.textContent.trim();
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column;
    button.addEventListener("click", () => {
      if (order?.column !== column) order = { column, sign: 1 };
      else order = order.sign > 0 ? { column, sign: -1 } : null;
      arrange();
    });
    head.replaceChildren(button);
  }

  function reveal() {
    const row = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!row || !board.contains(row)) return;
    const outer = rows.find((each) => each.contains(row));
    if (outer.hidden) {
      form.reset();
      form.elements.show.value = "all";
      filter();
    }
    const details = row.closest("details");
    if (details) details.open = true;
    row.scrollIntoView();
  }

  for (const [key, value] of new URLSearchParams(location.search)) {
    if (key in form.elements) form.elements[key].value = value;
  }
  form.addEventListener("input", () => (filter(), remember()));
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () =>
    setTimeout(() => {
      order = null;
      arrange();
      remember();
    }),
  );
  window.addEventListener("hashchange", reveal);
  form.hidden = false;
  filter();
  reveal();
});
