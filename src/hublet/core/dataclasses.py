"""Drop-in for `dataclasses.dataclass` that makes frozen records with less start-up time.

Records of the hub use this one; it behaves as the library's (decision 0024). For the usual form,
`frozen`, `slots` and `kw_only`, only `__init__` is compiled and all classes share the other methods;
every other form is left to the library.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, InitVar, fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

_T = TypeVar("_T")

_USUAL = {"frozen": True, "slots": True, "kw_only": True}


class _Factory:
    """Default of a parameter whose value is made anew for each object."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - to be imported from here
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        if cls is None and options == _USUAL:
            return _frozen
        return dataclasses.dataclass(cls, **options)


def _frozen(cls: type[_T]) -> type[_T]:
    if not _is_usual(cls):
        return dataclasses.dataclass(frozen=True, slots=True, kw_only=True)(cls)
    # Python itself sets `__hash__` to None where there is an `__eq__`.
    own = {name for name, value in vars(cls).items() if value is not None}
    doc = cls.__doc__
    # Without one the library would write the signature there, which takes it long.
    cls.__doc__ = doc or cls.__name__
    made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=True)(cls)
    made.__doc__ = doc
    made.__dataclass_params__.frozen = True  # type: ignore[attr-defined]
    compared = [each.name for each in fields(made) if each.compare]  # type: ignore[arg-type]
    shared = {
        **_SHARED,
        "__init__": _init_of(made),
        "_compared": staticmethod(attrgetter(*compared) if compared else _nothing),
    }
    for name, value in shared.items():
        if name not in own:
            setattr(made, name, value)
    return made


def _is_usual(cls: type) -> bool:
    """Tell whether a class needs nothing that is left out here, and inherits no fields."""
    if hasattr(cls, "__dataclass_fields__"):
        return False
    stated = [each for each in vars(cls).values() if isinstance(each, Field)]
    return all(each.init and each.hash is None for each in stated) and not any(
        each is InitVar or isinstance(each, InitVar)
        for each in vars(cls).get("__annotations__", {}).values()
    )


def _init_of(cls: type) -> Callable[..., None]:
    # The descriptor of a slot sets it, whatever `__setattr__` says.
    names: dict[str, Any] = {"_factory": _FACTORY, "__name__": cls.__module__}
    parameters, lines = [], []
    all_fields: tuple[Field[Any], ...] = fields(cls)
    for each in all_fields:
        name = each.name
        names[f"_set_{name}"] = getattr(cls, name).__set__
        parameter = value = name
        if each.default is not MISSING:
            names[f"_default_{name}"] = each.default
            parameter = f"{name}=_default_{name}"
        elif each.default_factory is not MISSING:
            names[f"_make_{name}"] = each.default_factory
            parameter = f"{name}=_factory"
            value = f"_make_{name}() if {name} is _factory else {name}"
        parameters.append(parameter)
        lines.append(f"_set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    head = ", ".join(["self", "*", *parameters] if parameters else ["self"])
    exec(f"def __init__({head}):\n " + "\n ".join(lines or ["pass"]), names)  # noqa: S102 - as the library does
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {each.name: each.type for each in all_fields} | {"return": None}
    return init


def _nothing(_: Any) -> tuple[()]:
    return ()


def _repr(self: Any) -> str:
    parts = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _eq(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash(self._compared(self))


def _refuse_to_set(_: Any, name: str, __: Any) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(_: Any, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


_SHARED = {
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _refuse_to_set,
    "__delattr__": _refuse_to_delete,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}
