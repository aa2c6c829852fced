import pytest

from intarsia.support.lazy_names import lazy_names


def test_a_name_is_imported_once() -> None:
    package: dict[str, object] = {"__name__": "shop"}
    get_attribute, list_names = lazy_names(package, {"sqrt": "math"})
    assert list_names() == ["__name__", "sqrt"]
    assert "sqrt" not in package
    value = get_attribute("sqrt")
    assert package["sqrt"] is value
    with pytest.raises(AttributeError, match=r"^module 'shop' has no attribute 'cbrt'$"):
        get_attribute("cbrt")
