"""The form of a page: its parameters cell as fields, the profiles as presets, as plain data."""

import json

from ci import parameters
from ci.contents import Page
from ci.parameters import PROFILES, Parameter
from lib.errors import BookError
from lib.paths import Project


def form(project: Project, page: Page, profile: str, seconds: dict[str, float]) -> dict:
    """Return what a browser needs to ask for parameters; `seconds` are those of earlier runs."""
    presets = {}
    for each in PROFILES:
        values = parameters.resolve(project, page, each)
        presets[each] = {"values": {name: str(value) for name, value in values.items()}}
        if each in seconds:
            presets[each]["seconds"] = round(seconds[each], 1)
    return {
        "page": page.name,
        "profile": profile,
        "fields": [_field(parameter) for parameter in page.parameters.values()],
        "presets": presets,
    }


def _field(parameter: Parameter) -> dict:
    """Return one parameter: a choice among words, or a text that the run itself will check."""
    allowed = parameter.range
    field = {"name": parameter.name, "meaning": parameter.meaning}
    if isinstance(parameter.default, bool):
        field["choices"] = ["True", "False"]
    elif allowed is not None and allowed.choices and not isinstance(parameter.default, list):
        field["choices"] = [str(choice) for choice in allowed.choices]
    elif allowed is not None:
        field["range"] = allowed.text
    return field


def checked(page: Page, texts: dict[str, str]) -> tuple[dict, dict[str, str]]:
    """Return the values of a filled form, and for each that is refused the sentence that says why.

    These are the refusals of `run -p`, and no others.
    """
    values, errors = {}, {}
    for name, text in texts.items():
        try:
            parameters.check_options({name: text}, [page])
            values[name] = parameters.check(page.parameters[name], text, page.name)
        except BookError as error:
            errors[name] = str(error)
    for name in values:
        try:
            parameters.check_dataset(page, page.parameters[name], page.defaults | values)
        except BookError as error:
            errors[name] = str(error)
    return values, errors


def script(data: dict, **attributes: str) -> str:
    """Return data as a script element that no text in it can end."""
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    words = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f'<script type="application/json"{words}>{text}</script>'
