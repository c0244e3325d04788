"""Writes moto's answers fast; what is written is the same.

moto looks for each attribute under several spellings, compares each path with every transformation, and writes
XML through a SAX generator: 3 ms of CPU per instance described. Here spellings and transformations are
remembered by class, and XML is joined from strings.
"""

from typing import Any
from xml.sax.saxutils import escape, quoteattr

from moto.core import serialize
from moto.core.serialize import MISSING, AttributePickerContext, EC2Serializer, QuerySerializer, ResponseSerializer
from moto.core.utils import get_value

_spellings: dict[tuple[type, Any, str], tuple[str, ...]] = {}
_transforms: dict[tuple[int, str], Any] = {}


def _value(self: ResponseSerializer, value: Any, key: str, shape: Any) -> Any:
    picker = self._value_picker
    if type(picker) is not serialize.XFormedAttributePicker:
        return _moto_value(self, value, key, shape)
    place = (type(value), shape, key)
    spellings = _spellings.get(place)
    if spellings is None:
        context = AttributePickerContext(
            obj=value,
            key=key,
            shape=shape,
            operation_model=self.operation_model,
            service_model=self.operation_model.service_model,
            key_path=".".join(self.path),
        )
        spellings = _spellings[place] = tuple(dict.fromkeys(picker.get_possible_keys(context)))
    found = None
    for one in spellings:
        got = get_value(value, one, MISSING)
        if got is not MISSING:
            found = got
            break
    transform = _transform(picker.response_transformers, f"{'.'.join(self.path)}.{key}")
    return found if transform is None else transform(found)


def _transform(transformers: dict[str, Any], path: str) -> Any:
    if not transformers:
        return None
    place = (id(transformers), path)
    if place not in _transforms:
        _transforms[place] = next((one for end, one in transformers.items() if path.endswith(end)), None)
    return _transforms[place]


def _body(self: QuerySerializer, body: dict[str, Any]) -> str:
    parts = ['<?xml version="1.0" encoding="utf-8"?>\n']
    for name, value in body.items():
        _write(parts, name, value)
    return "".join(parts)


def _write(parts: list[str], name: str, value: Any) -> None:
    if isinstance(value, (list, tuple)):
        for one in value:
            _write(parts, name, one)
    elif isinstance(value, dict):
        attributes = "".join(f" {key[1:]}={quoteattr(str(one))}" for key, one in value.items() if key[:1] == "@")
        parts.append(f"<{name}{attributes}>")
        for key, one in value.items():
            if key == "#text":
                parts.append(escape(str(one)))
            elif key[:1] != "@":
                _write(parts, key, one)
        parts.append(f"</{name}>")
    elif value is None or value == "":
        parts.append(f"<{name}/>")
    elif isinstance(value, bool):
        parts.append(f"<{name}>{'true' if value else 'false'}</{name}>")
    else:
        parts.append(f"<{name}>{escape(str(value))}</{name}>")


_moto_value = ResponseSerializer.get_value
ResponseSerializer.get_value = _value
EC2Serializer._serialize_body = _body
QuerySerializer._serialize_body = _body
