// Buttons that copy: the address of this claim, and every block of code.
function copyButton(label, text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed here";
    }
    setTimeout(() => (button.textContent = label), 1500);
  });
  return button;
}

document.querySelector(".meta").append(
  " ",
  copyButton("Copy link", () => location.href.split("#")[0]),
);
for (const block of document.querySelectorAll("pre")) {
  block.before(copyButton("Copy", () => block.textContent));
}
