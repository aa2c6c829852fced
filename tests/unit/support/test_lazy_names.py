import pytest

import intarsia as ia
from intarsia.support.lazy_names import is_dunder, lazy_names


def test_a_name_is_imported_once() -> None:
    package: dict[str, object] = {"__name__": "shop"}
    get_attribute, list_names = lazy_names(package, {"sqrt": "math"})
    assert list_names() == ["__name__", "sqrt"]
    assert "sqrt" not in package
    value = get_attribute("sqrt")
    assert package["sqrt"] is value
    with pytest.raises(AttributeError, match=r"^module 'shop' has no attribute 'cbrt'$"):
        get_attribute("cbrt")


def test_only_public_names_are_listed() -> None:
    package: dict[str, object] = {"__name__": "shop", "__all__": ["price"], "price": 1, "till": 2, "_key": 3}
    assert lazy_names(package, {"sqrt": "math"})[1]() == ["__all__", "__name__", "price"]


def test_names_of_the_package() -> None:
    names = [name for name in dir(ia) if not is_dunder(name)]
    assert set(names) == {*ia.__all__} - {"__version__"}
    assert "tune" in names
    assert "__version__" in dir(ia)


def test_a_module_that_the_runtime_lacks_says_what_to_install() -> None:
    package: dict[str, object] = {"__name__": "intarsia"}
    get_attribute, _ = lazy_names(package, {"tune": "intarsia.absent", "other": "absent_package"})
    with pytest.raises(AttributeError) as caught:
        get_attribute("tune")
    assert str(caught.value) == (
        "intarsia.tune needs the compiler, which intarsia-runtime does not contain\n"
        "help: pip install intarsia"
    )
    with pytest.raises(ModuleNotFoundError, match="absent_package"):
        get_attribute("other")
