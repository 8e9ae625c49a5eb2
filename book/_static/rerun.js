// The form of a page: its values become the command that reruns it. `regretbook live` uses it, too.
const rerun = {
  // Make an element: attributes, then children that are texts or elements.
  make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
    element.append(...children);
    return element;
  },

  // Write a word as a shell reads it back.
  quoted(word) {
    return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`;
  },

  // Return the command for some values; those of the profile need not be named.
  command(data, profile, values) {
    const words = ["regretbook", "run", data.page];
    if (profile !== "book") words.push("--profile", profile);
    const usual = data.presets[profile].values;
    Object.entries(values)
      .filter(([name, value]) => value !== usual[name])
      .forEach(([name, value]) => words.push("-p", `${name}=${value}`));
    return words.map(rerun.quoted).join(" ");
  },

  duration(seconds) {
    if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
    return seconds < 5400 ? `${Math.round(seconds / 60)} min` : `${(seconds / 3600).toFixed(1)} h`;
  },

  field(field, prefix) {
    const id = `${prefix}-${field.name}`;
    const control = field.choices
      ? rerun.make("select", {}, ...field.choices.map((each) => rerun.make("option", {}, each)))
      : rerun.make("input", { type: "text", autocomplete: "off", spellcheck: "false" });
    control.id = id;
    control.name = field.name;
    control.setAttribute("aria-describedby", `${id}-hint ${id}-error`);
    const hint = [field.meaning, field.range && `in ${field.range}`].filter(Boolean).join(", ");
    return rerun.make(
      "div",
      { class: "rb-field" },
      rerun.make("label", { for: id }, field.name),
      control,
      rerun.make("span", { class: "rb-hint", id: `${id}-hint` }, hint),
      rerun.make("span", { class: "rb-error", id: `${id}-error`, role: "alert" }),
    );
  },

  // Return the form of a page; `changed` is called after every change.
  form(data, prefix, changed = () => {}) {
    const form = rerun.make("form", { class: "rb-form", novalidate: "" });
    const names = Object.keys(data.presets);
    const presets = names.map((name) => {
      const choice = rerun.make("input", { type: "radio", name: "profile", value: name });
      choice.checked = name === data.profile;
      return rerun.make("label", {}, choice, ` ${name}`);
    });
    const legend = rerun.make("legend", {}, "Values of the profile");
    const time = rerun.make("p", { class: "rb-time" });
    const command = rerun.make("code", { class: "rb-command", tabindex: "0" });
    const copy = rerun.make("button", { type: "button", class: "rb-button" }, "Copy");
    form.append(
      rerun.make("fieldset", { class: "rb-presets" }, legend, ...presets),
      ...data.fields.map((field) => rerun.field(field, prefix)),
      time,
      rerun.make("div", { class: "rb-copy" }, command, copy),
    );

    const made = {
      element: form,
      profile: () => form.elements.profile.value,
      values: () =>
        Object.fromEntries(
          data.fields.map(({ name }) => [name, form.elements[name].value.trim()]),
        ),
      // Show the sentences that refuse values, and no others.
      refuse(errors) {
        data.fields.forEach(({ name }) => {
          const control = form.elements[name];
          control.toggleAttribute("aria-invalid", name in errors);
          if (name in errors) control.setAttribute("aria-invalid", "true");
          form.querySelector(`#${prefix}-${name}-error`).textContent = errors[name] ?? "";
        });
      },
    };
    const update = () => {
      const preset = data.presets[made.profile()];
      const own = data.fields.some(({ name }) => made.values()[name] !== preset.values[name]);
      const known = preset.seconds !== undefined;
      time.textContent = known
        ? `Profile ${made.profile()} took ${rerun.duration(preset.seconds)} when it was last run` +
          (own ? "; other values take another time." : ".")
        : `How long profile ${made.profile()} takes is not known yet.`;
      command.textContent = rerun.command(data, made.profile(), made.values());
      changed();
    };
    const preset = () => {
      const { values } = data.presets[made.profile()];
      data.fields.forEach(({ name }) => (form.elements[name].value = values[name]));
    };
    form.addEventListener("input", (event) => {
      if (event.target.name === "profile") preset();
      update();
    });
    form.addEventListener("submit", (event) => event.preventDefault());
    copy.addEventListener("click", async () => {
      await navigator.clipboard.writeText(command.textContent);
      copy.textContent = "Copied";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    });
    preset();
    update();
    return made;
  },
};

// On a published page the form takes the place of the plain command in the footer.
document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".rb-rerun").forEach((place) => {
    const data = JSON.parse(place.querySelector("script").textContent);
    place.replaceChildren(rerun.form(data, "rb-rerun").element);
  });
});
