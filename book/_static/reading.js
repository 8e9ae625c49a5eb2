// Two reading depths, contents that follow the reader, and the parts of a strip that need a script.

const DEPTHS = { read: "Read", code: "Read with code" };

function remembered() {
  try {
    return localStorage.getItem("rb-depth") === "code" ? "code" : "read";
  } catch {
    return "read"; // storage may be forbidden; then every page begins anew
  }
}

function setDepth(depth) {
  document.querySelectorAll("details.rb-code").forEach((fold) => (fold.open = depth === "code"));
  document
    .querySelectorAll(".rb-depth button")
    .forEach((button) => button.setAttribute("aria-pressed", button.value === depth));
}

function choose(depth) {
  try {
    localStorage.setItem("rb-depth", depth);
  } catch {
    // the choice holds for this page alone
  }
  setDepth(depth);
}

function addSwitch() {
  const place = document.querySelector(".article-header-buttons");
  if (!place || !document.querySelector("details.rb-code")) return;
  const group = document.createElement("div");
  group.className = "rb-depth";
  group.setAttribute("role", "group");
  group.setAttribute("aria-label", "How much code to show");
  for (const [depth, text] of Object.entries(DEPTHS)) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", value: depth, textContent: text });
    button.addEventListener("click", () => choose(depth));
    group.append(button);
  }
  place.prepend(group);
  setDepth(remembered());
}

// The theme's own marking loses the reader at the end of a page, and a long list never scrolls. The build takes it
// out (ci/finish.py): it would mark another section a moment later, and after every change of the window.
function followReader() {
  const list = document.querySelector(".bd-sidebar-secondary");
  const links = [...(list?.querySelectorAll('.page-toc a[href^="#"]') ?? [])];
  const section = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1)));
  const known = links.filter(section);
  const reached = () => {
    const page = document.documentElement;
    const atEnd = scrollY > 0 && scrollY + innerHeight >= page.scrollHeight - 2; // where the last section is short
    return atEnd ? known.at(-1) : known.findLast((link) => section(link).getBoundingClientRect().top < innerHeight / 3);
  };
  const follow = () => {
    const active = reached();
    for (const link of known) {
      link.classList.toggle("active", link === active);
      if (link === active) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    for (const entry of list.querySelectorAll(".toc-entry")) {
      entry.classList.toggle("active", Boolean(active) && entry.contains(active)); // unfolds what is in it
    }
    if (!active) return;
    const [inner, outer] = [active.getBoundingClientRect(), list.getBoundingClientRect()];
    const room = outer.height / 4;
    if (inner.top < outer.top + room) list.scrollTop -= outer.top + room - inner.top;
    else if (inner.bottom > outer.bottom - room) list.scrollTop += inner.bottom - outer.bottom + room;
  };
  let waiting = false;
  const soon = () => {
    if (!waiting) requestAnimationFrame(() => ((waiting = false), follow()));
    waiting = true;
  };
  if (!known.length) return;
  window.addEventListener("scroll", soon, { passive: true });
  // The head of the page takes room from the list while one scrolls, and a fold that opens moves all below it.
  const sizes = new ResizeObserver(soon);
  [list, document.querySelector("article")].forEach((each) => sizes.observe(each));
}

function savePng(figure, scale = 3) {
  const svg = figure.querySelector("svg").cloneNode(true);
  const { width, height } = figure.querySelector("svg").viewBox.baseVal;
  svg.setAttribute("width", width * scale);
  svg.setAttribute("height", height * scale);
  svg.style.color = "black";
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    Object.assign(canvas, { width: width * scale, height: height * scale });
    const paper = canvas.getContext("2d");
    paper.fillStyle = "white";
    paper.fillRect(0, 0, canvas.width, canvas.height);
    paper.drawImage(image, 0, 0);
    const link = document.createElement("a");
    Object.assign(link, { href: canvas.toDataURL("image/png"), download: `${figure.id}.png` });
    link.click();
  };
  const text = new XMLSerializer().serializeToString(svg);
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

function addToStrip(strip, text, action) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", textContent: text });
  button.addEventListener("click", action);
  strip.append(" ", button);
}

function completeStrips() {
  for (const strip of document.querySelectorAll(".rb-strip")) {
    const figure = strip.closest("figure");
    if (figure.querySelector("svg")) addToStrip(strip, "PNG", () => savePng(figure));
    const fold = figure.closest(".cell")?.querySelector("details.rb-code");
    if (fold)
      addToStrip(strip, "Code", () => {
        fold.open = true;
        fold.scrollIntoView({ block: "start" });
        fold.querySelector("summary").focus({ preventScroll: true });
      });
    strip.querySelector('a[href^="#"]')?.addEventListener("click", (event) => {
      navigator.clipboard?.writeText(event.target.href).then(() => {
        event.target.textContent = "Link copied";
        setTimeout(() => (event.target.textContent = "Link"), 2000);
      });
    });
  }
}

// A formula inside a sentence cannot be broken; one that is wider than its column scrolls by itself.
function markWideMaths() {
  const formulas = [...document.querySelectorAll("article span.math")];
  formulas.forEach((formula) => formula.classList.remove("rb-wide-maths"));
  const wide = formulas.filter((formula) => {
    const column = formula.closest("p, li, dd, td, th, figcaption, div");
    return formula.getBoundingClientRect().width > column.clientWidth;
  });
  wide.forEach((formula) => formula.classList.add("rb-wide-maths"));
}

// Whoever has only a keyboard must reach a box that scrolls, and no other. The theme marks code too, but late.
function markScrolling() {
  const names = "article pre, .rb-formula, .rb-scroll, .rb-canvas, .rb-wide-maths, .rb-claims-scroll";
  const boxes = [...document.querySelectorAll(names)];
  const scrolls = boxes.map((box) => box.scrollWidth > box.clientWidth); // all before the first change: one layout
  boxes.forEach((box, place) => {
    if (scrolls[place]) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  });
}

function fit() {
  markWideMaths();
  markScrolling();
}

document.addEventListener("DOMContentLoaded", () => {
  addSwitch();
  followReader();
  completeStrips();
});

window.addEventListener("load", () => {
  document.fonts.ready.then(fit);
  window.addEventListener("resize", fit);
  let due = 0; // all folds of a page may open at once
  const fitSoon = () => (cancelAnimationFrame(due), (due = requestAnimationFrame(fit)));
  document.addEventListener("toggle", fitSoon, true);
});
