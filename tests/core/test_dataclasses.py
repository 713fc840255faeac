"""Our `dataclass` is the library's in all that can be seen: each test runs with both."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, InitVar, asdict, field, fields, replace
from typing import Any, ClassVar

import pytest

from hublet.core import dataclasses as ours

BOTH = [
    pytest.param(dataclasses.dataclass, id="the library's"),
    pytest.param(ours.dataclass, id="ours"),
]
Decorator = Callable[..., Callable[[type], Any]]


@ours.dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Can be pickled, because it stands in a module."""

    name: str
    parts: list[str] = field(default_factory=list)


@pytest.fixture(params=BOTH)
def decorate(request: pytest.FixtureRequest) -> Callable[[type], Any]:
    decorator: Decorator = request.param
    return decorator(frozen=True, slots=True, kw_only=True)


@pytest.fixture
def loom(decorate: Callable[[type], Any]) -> Any:
    class Loom:
        """Weaves."""

        kind: ClassVar[str] = "loom"
        name: str
        cards: list[int] = field(default_factory=list)
        secret: str = field(default="", repr=False)
        kept: int = field(default=0, compare=False)

        @property
        def title(self) -> str:
            return self.name.title()

    return decorate(Loom)


def test_values_defaults_and_what_is_made_anew(loom: Any) -> None:
    first, second = loom(name="jacquard"), loom(name="jacquard", cards=[1], secret="s", kept=2)

    assert (first.name, first.cards, first.secret, first.kept) == ("jacquard", [], "", 0)
    assert (second.name, second.cards, second.secret, second.kept) == ("jacquard", [1], "s", 2)
    assert first.cards is not loom(name="jacquard").cards
    assert (loom.kind, first.title, loom.__doc__) == ("loom", "Jacquard", "Weaves.")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        pytest.param({}, "missing 1 required keyword-only argument: 'name'", id="too few"),
        pytest.param(
            {"name": "a", "colour": 1}, "unexpected keyword argument", id="an unknown one"
        ),
    ],
)
def test_wrong_arguments_are_refused(loom: Any, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence) as refused:
        loom(**given)

    assert "Loom.__init__()" in str(refused.value)
    with pytest.raises(TypeError, match="positional argument"):
        loom("jacquard")


def test_nothing_of_it_changes(loom: Any) -> None:
    made = loom(name="jacquard")

    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'name'"):
        made.name = "other"
    # The library stumbles over the class that it made anew for the slots.
    with pytest.raises((FrozenInstanceError, TypeError)):
        made.colour = "red"
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'name'"):
        del made.name
    assert not hasattr(made, "__dict__")


def test_it_is_shown_with_all_but_secrets(loom: Any) -> None:
    made = loom(name="jacquard", secret="hidden")

    assert repr(made).endswith("Loom(name='jacquard', cards=[], kept=0)")
    assert repr(made).startswith("loom.<locals>.")


def test_equal_is_what_is_of_one_class_with_equal_values(
    loom: Any, decorate: Callable[[type], Any]
) -> None:
    class Other:
        name: str

    assert loom(name="a", kept=1) == loom(name="a", kept=2)
    assert loom(name="a", secret="b") != loom(name="a", secret="c")
    assert decorate(Other)(name="a") != loom(name="a")
    assert loom(name="a").__eq__("a") is NotImplemented


@pytest.mark.parametrize("names", [(), ("one",), ("one", "two")], ids=len)
def test_what_is_equal_has_one_hash(
    decorate: Callable[[type], Any], names: tuple[str, ...]
) -> None:
    cls = decorate(type("Cls", (), {"__annotations__": dict.fromkeys(names, str)}))
    values = dict.fromkeys(names, "x")

    assert hash(cls(**values)) == hash(cls(**values))
    assert cls(**values) == cls(**values)
    assert {cls(**values): 1}[cls(**values)] == 1
    if names:
        assert cls(**values) != cls(**values | {names[0]: "y"})


def test_the_librarys_tools_know_it(loom: Any) -> None:
    made = loom(name="jacquard", cards=[1])

    assert replace(made, name="other") == loom(name="other", cards=[1])
    assert asdict(made) == {"name": "jacquard", "cards": [1], "secret": "", "kept": 0}
    assert [each.name for each in fields(loom)] == ["name", "cards", "secret", "kept"]
    assert loom.__dataclass_params__.frozen
    assert loom.__match_args__ == ()
    assert str(inspect.signature(loom)) == (
        "(*, name: str, cards: list[int] = <factory>, secret: str = '', kept: int = 0) -> None"
    )


def test_copies_are_equal(loom: Any) -> None:
    made = loom(name="jacquard", cards=[1])

    assert copy.copy(made) == made
    deep = copy.deepcopy(made)
    assert (deep, deep.cards is made.cards) == (made, False)
    engine = Engine(name="analytical", parts=["mill"])
    assert pickle.loads(pickle.dumps(engine)) == engine


def test_a_class_inherits_fields(decorate: Callable[[type], Any]) -> None:
    class Base:
        id: int
        name: str = "base"

    base = decorate(Base)

    class Heir(base):  # type: ignore[misc, valid-type]
        name: str = "heir"
        more: bool = False

    heir = decorate(Heir)
    assert repr(heir(id=1)).endswith("Heir(id=1, name='heir', more=False)")
    assert heir(id=1) != base(id=1, name="heir")
    assert heir(id=1, more=True) != heir(id=1)
    assert not hasattr(heir(id=1), "__dict__")


def test_methods_of_its_own_stay(decorate: Callable[[type], Any]) -> None:
    class Own:  # noqa: PLW1641 - the decorator adds it
        name: str

        def __post_init__(self) -> None:
            if not self.name:
                raise ValueError("It needs a name.")

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, str) or self.name == getattr(other, "name", None)

    own = decorate(Own)
    assert (repr(own(name="a")), own(name="a") == "b") == ("mine", True)
    assert hash(own(name="a")) == hash(own(name="a"))
    with pytest.raises(ValueError, match=r"It needs a name\."):
        own(name="")


def test_unusual_fields_are_the_librarys_work(decorate: Callable[[type], Any]) -> None:
    class Unusual:
        given: InitVar[int]
        doubled: int = field(init=False)
        unhashed: list[int] = field(default_factory=list, hash=False)

        def __post_init__(self, given: int) -> None:
            object.__setattr__(self, "doubled", 2 * given)

    unusual = decorate(Unusual)
    assert unusual(given=2).doubled == 4
    assert hash(unusual(given=2)) == hash(unusual(given=2))


@pytest.mark.parametrize("decorator", BOTH)
def test_other_forms_are_the_librarys(decorator: Any) -> None:
    @decorator
    class Bare:
        name: str

    @decorator(slots=True, order=True)
    class Ordered:
        name: str

    bare = Bare("a")  # type: ignore[call-arg]
    bare.name = "b"
    assert bare == Bare("b")  # type: ignore[call-arg]
    assert Ordered("a") < Ordered("b")  # type: ignore[call-arg, operator]
