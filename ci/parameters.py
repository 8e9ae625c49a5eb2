"""Parameters: read from the cell that declares them, and checked before anything runs."""

import ast
import io
import math
import re
import shlex
import tokenize
from collections.abc import Iterable
from typing import Any, NamedTuple

from lib.errors import BookError, nearest
from lib.files import read_yaml
from lib.paths import Project

PROFILES = ("smoke", "book", "thesis")
KINDS = {bool: "True or False", int: "an integer", float: "a number", str: "a text", list: "a list"}


class Range(NamedTuple):
    """The values that a parameter may take; `text` is how its comment says it."""

    text: str
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    choices: tuple | None = None
    sizes: tuple[str, str] | None = None  # of a dataset: the users and items that it must have

    def contains(self, value) -> bool:
        if self.choices is not None:
            return value in self.choices
        if self.sizes is not None:  # what `resolve` asks, which knows all parameters
            return True
        if isinstance(value, str):
            return False
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below


class Parameter(NamedTuple):
    """One line of a parameters cell."""

    name: str
    default: Any
    meaning: str = ""
    range: Range | None = None


def parse_cell(source: str, chapter: str) -> dict[str, Parameter]:
    """Return the parameters that a cell declares: a literal each, explained by its comment."""
    try:
        statements = ast.parse(source).body
    except SyntaxError as error:
        raise BookError(f"the parameters cell of {chapter} is not Python: {error.msg}") from None
    noted = comments(source)
    found = {}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if value is not None:
                pass
            case _:
                raise BookError(
                    f"the parameters cell of {chapter} may only hold lines like "
                    f"'T = 20_000  # meaning', but has {ast.unparse(statement)!r}"
                )
        try:
            default = ast.literal_eval(value)
        except ValueError:
            raise BookError(f"parameter {name} of {chapter} must be a plain literal") from None
        if type(default) not in KINDS:
            raise BookError(
                f"parameter {name} of {chapter} must be a bool, integer, number, text or list"
            )
        comment = noted.get(statement.end_lineno) or noted.get(statement.lineno, "")
        meaning, allowed = _meaning(comment, f"parameter {name} of {chapter}")
        parameter = Parameter(name, default, meaning, allowed)
        found[name] = parameter._replace(default=check(parameter, default, chapter))
    for name, parameter in found.items():
        sizes = parameter.range.sizes if parameter.range else None
        for word in _terms("+".join(sizes)) if sizes else ():
            if not word.isdecimal() and word not in found:
                raise BookError(
                    f"parameter {name} of {chapter} has the range {parameter.range.text}, but "
                    f"{word!r} is no parameter"
                )
    return found


def comments(source: str) -> dict[int, str]:
    """Return the comment of each line that has one."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: token.string.lstrip("# ").rstrip()
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _meaning(comment: str, where: str) -> tuple[str, Range | None]:
    """Split 'rounds, in [1, 100]' into the meaning and the range."""
    matched = re.fullmatch(r"(?:(.*),\s*)?in\s*((?:datasets)?[\[({].*[\])}])", comment)
    if not matched:
        return comment, None
    text = matched[2]
    if sizes := re.fullmatch(r"datasets\(([^,]+),([^,]+)\)", text):
        return matched[1] or "", Range(text, sizes=(sizes[1].strip(), sizes[2].strip()))
    try:
        if text[0] == "{":
            return matched[1] or "", Range(text, choices=tuple(ast.literal_eval(f"[{text[1:-1]}]")))
        low, high = (float(bound.replace("∞", "inf")) for bound in text[1:-1].split(","))
    except (ValueError, SyntaxError):
        raise BookError(f"{where} has the range {text!r}, which is not like [1, 100]") from None
    return matched[1] or "", Range(text, low, high, text[0] == "(", text[-1] == ")")


def check(parameter: Parameter, value, chapter: str):
    """Return a value in the parameter's own type, or refuse it in one sentence."""
    name, default, _, allowed = parameter
    where = f"parameter {name} of {chapter}"
    if isinstance(default, list):
        value = _as_list(value)
        if not isinstance(value, list):
            raise BookError(f"{where} must be a list such as {default}, but is {_short(value)}")
        if default and not value:
            raise BookError(f"{where} is an empty list, but must have at least one value")
        if not default:
            return value
        element = parameter._replace(default=default[0])
        found = [check(element, each, chapter) for each in value]
        if twice := [each for each in found if found.count(each) > 1]:
            raise BookError(f"{where} has {_short(twice[0])} twice; give each value once")
        return found
    kind = type(default)
    result = _as(kind, value)
    if result is None:
        raise BookError(f"{where} must be {KINDS[kind]}, but is {_short(value)}")
    if kind is float and math.isnan(result):
        raise BookError(f"{where} is NaN, but must be a number")
    if allowed is not None and not allowed.contains(result):
        raise BookError(f"{where} is {_short(result)}, but must be in {allowed.text}")
    if kind is float and allowed is None and math.isinf(result):
        raise BookError(f"{where} is {result!r}, but must be finite")
    return result


def _short(value) -> str:
    """Return a value for a message, of which the beginning tells enough."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return "an enormous number"
    return text if len(text) <= 60 else f"{text[:60]}…"


def _as(kind: type, value):
    """Return a value or its text as bool, int, float or str; None when it is of another type."""
    if kind is str:
        if not isinstance(value, str):
            return None
        parsed = _literal(value)
        return parsed if isinstance(parsed, str) else value
    if isinstance(value, str):
        value = _literal(value)
    if kind is bool:
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        if kind is float:
            return float(value)
        return int(value) if math.isfinite(value) and value == int(value) else None
    except OverflowError:  # an integer beyond all numbers
        return None


def _as_list(value):
    """Return '[1, 2]' or '1, 2' or 'a,b' as a list; anything else as it is."""
    if isinstance(value, str):
        parsed = _literal(value)
        value = value.split(",") if parsed is None and "," in value else parsed
    return list(value) if isinstance(value, tuple) else value


def _literal(text: str):
    """Return the value of a Python literal, of true, false, nan and inf, else None."""
    words = {"true": True, "false": False, "nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    if text.strip().lower() in words:
        return words[text.strip().lower()]
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):  # thousands of minus signs
        return None


def parse_options(options: Iterable[str]) -> dict[str, str]:
    """Return the name=value pairs of `-p`, still as text."""
    values = {}
    for option in options:
        name, equals, value = option.partition("=")
        name = name.strip()
        if not equals or not name:
            raise BookError(f"-p takes name=value, but was given {_short(option)}")
        if name in values:
            raise BookError(f"-p gives {name} twice")
        values[name] = value.strip()
    return values


def profile_values(project: Project, profile: str, chapter: str) -> dict:
    """Return what a profile changes in a chapter."""
    profiles = {name: {} for name in PROFILES} | _profiles(project)
    if profile not in profiles:
        raise BookError(f"there is no profile {profile!r}; the profiles are {', '.join(profiles)}")
    return profiles[profile].get(chapter, {})


def _profiles(project: Project) -> dict[str, dict[str, dict]]:
    """Return the values of profiles.yml by profile and chapter, after a look at its shape."""
    found = read_yaml(project.profiles, dict)
    for name, entries in found.items():
        for each in (entries, *(entries.values() if isinstance(entries, dict) else ())):
            if not isinstance(each, dict | None):
                raise BookError(
                    f"profile {name} in profiles.yml must give chapters, and these parameters, "
                    f"their values, but has {each!r}"
                )
    return {
        name: {chapter: values or {} for chapter, values in (entries or {}).items()}
        for name, entries in found.items()
    }


def check_profiles(project: Project, pages: Iterable) -> None:
    """Refuse a profile with values that no page would take: they would do nothing."""
    declared: dict[str, set[str]] = {}
    for page in pages:
        declared.setdefault(page.chapter, set()).update(page.parameters)
    for profile, entries in _profiles(project).items():
        for chapter, values in entries.items():
            if chapter not in declared:
                near = nearest(chapter, declared)
                raise BookError(
                    f"profile {profile} in profiles.yml has no chapter {chapter!r}{near}"
                )
            for name in values:
                if name not in declared[chapter]:
                    near = nearest(name, declared[chapter])
                    raise BookError(
                        f"profile {profile} in profiles.yml gives {chapter} a parameter {name!r} "
                        f"that none of its pages declares{near}"
                    )


def resolve(project: Project, page, profile: str = "book", options: dict | None = None) -> dict:
    """Return every parameter of a page: its default, the profile's value, then that of `-p`.

    Profiles and options are of the chapter: a page takes the names that it declares.
    """
    values = dict(page.defaults)
    for origin in (profile_values(project, profile, page.chapter), options or {}):
        for name in page.parameters:
            if name in origin:
                values[name] = check(page.parameters[name], origin[name], page.name)
    for parameter in page.parameters.values():
        check_dataset(page, parameter, values)
    return values


def check_dataset(page, parameter: Parameter, values: dict) -> None:
    """Refuse a dataset of a reader's that has no ratings, or too few users or items for the rest.

    Any other parameter passes.
    """
    name = values[parameter.name]
    if not (parameter.range and parameter.range.sizes) or name == parameter.default:
        return
    from lib import datasets

    if name not in datasets.registry():
        raise BookError(
            f"parameter {parameter.name} of {page.name} is {name!r}, which is no dataset"
            + (nearest(name, datasets.registry()) or "; `regretbook data add` makes one of a file")
        )
    has = datasets.counts(name)
    need = [_sum(text, values) for text in parameter.range.sizes]
    if has["users"] < need[0] or has["items"] < need[1]:
        users, items = (f" ({each})" * (not each.isdecimal()) for each in parameter.range.sizes)
        raise BookError(
            f"{name} has {has['users']:,} users and {has['items']:,} items, but {page.name} needs "
            f"{need[0]:,} users{users} and {need[1]:,} items{items}"
        )


def _sum(text: str, values: dict) -> int:
    """Return the value of `users + 100`."""
    return sum(int(word) if word.isdecimal() else values[word] for word in _terms(text))


def _terms(text: str) -> list[str]:
    return [word.strip() for word in text.split("+")]


def check_options(options: dict, pages: list) -> None:
    """Refuse an option that none of the pages declares."""
    declared = dict.fromkeys(name for page in pages for name in page.parameters)
    for name in options:
        if name not in declared:
            where = pages[0].chapter if len(pages) > 1 else pages[0].name
            raise BookError(
                f"{where} has no parameter {name!r}{nearest(name, declared)}"
                f"; it has {', '.join(declared)}"
            )


def changed(page, parameters: dict) -> dict:
    """Return the parameters that differ from what the page declares."""
    return {name: value for name, value in parameters.items() if value != page.defaults[name]}


def command(project: Project, page, profile: str, parameters: dict) -> str:
    """Return the command that reruns a page with exactly these parameters."""
    words = ["regretbook", "run", page.name]
    if profile != "book":
        words += ["--profile", profile]
    usual = resolve(project, page, profile)
    for name, value in parameters.items():
        if value != usual[name]:
            words += ["-p", f"{name}={value}"]
    return shlex.join(words)
