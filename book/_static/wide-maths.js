// A formula inside a sentence cannot be broken; one that is wider than its column scrolls by itself.
function markWideMaths() {
  const formulas = [...document.querySelectorAll("article mjx-container:not([display])")];
  formulas.forEach((formula) => formula.classList.remove("rb-wide-maths"));
  const wide = formulas.filter((formula) => {
    const column = formula.closest("p, li, dd, td, th, figcaption, div");
    return formula.getBoundingClientRect().width > column.clientWidth;
  });
  wide.forEach((formula) => formula.classList.add("rb-wide-maths"));
}

window.addEventListener("load", () => {
  window.MathJax?.startup?.promise?.then(markWideMaths);
  window.addEventListener("resize", markWideMaths);
  document.addEventListener("toggle", markWideMaths, true);
});
