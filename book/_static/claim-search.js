// The search of the book knows its own pages; this adds the claims, which have pages of their own.
window.addEventListener("DOMContentLoaded", () => {
  const results = document.querySelector("#search-results");
  const query = new URLSearchParams(location.search).get("q")?.trim().toLowerCase();
  if (!results || !query) return;
  const script = document.createElement("script");
  script.src = "claims/names.js";
  script.addEventListener("load", () => {
    const words = query.split(/\s+/);
    const said = (statement) => {
      const text = document.createElement("span");
      text.innerHTML = statement; // the book's own words, escaped, with their formulas
      return text;
    };
    const found = Object.entries(window.regretbookClaims).filter(([id, [statement]]) => {
      const text = `${id} ${said(statement).textContent}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    if (!found.length) return;
    const section = document.createElement("section");
    section.id = "rb-found-claims";
    const title = document.createElement("h2");
    title.textContent = found.length === 1 ? "A claim" : `${found.length} claims`;
    const list = document.createElement("ul");
    // An exact id comes first: whoever types one wants that page.
    found.sort(([a], [b]) => (b === query) - (a === query));
    for (const [id, [statement, verdicts]] of found.slice(0, 12)) {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = `claims/${id}.html`;
      link.textContent = id;
      item.append(link, ": ", said(statement), ` (${[...new Set(verdicts)].join(", ")})`);
      list.append(item);
    }
    section.append(title, list);
    results.before(section);
  });
  document.head.append(script);
});
