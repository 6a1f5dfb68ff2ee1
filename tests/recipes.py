"""Options given flat, as tests give them that sweep settings and parameters alike."""

from dataclasses import fields

from ihgmm import Recipe

SETTINGS = {field.name for field in fields(Recipe)}


def with_recipe(base="default", *, own=(), **options):
    """Return options with the settings of a recipe, but for some, put into one."""
    names = SETTINGS & set(options) - set(own)
    settings = {name: options.pop(name) for name in names}
    return options | ({"recipe": Recipe.of(base, **settings)} if settings else {})
