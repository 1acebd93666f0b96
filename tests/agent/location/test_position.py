"""An answer is a position or is refused by name."""

from __future__ import annotations

import pytest

from agent.call import Response
from agent.errors import BadAnswer
from agent.location.position import Position, position_to_json


@pytest.mark.contract("D8.1")
def test_a_position_is_read_with_its_uncertainty() -> None:
    body = b'{"lat":63.4219,"lon":10.4371,"uncertainty":24.4,"fulfilledWith":"WIFI","new":1}'
    assert Response(200, {}, body).decode(Position) == Position(63.4219, 10.4371, 24.4, "WIFI")


@pytest.mark.contract("D8.1")
def test_anchors_and_the_position_by_cells_are_kept() -> None:
    body = (
        b'{"lat":63.4219,"lon":10.4371,"uncertainty":24,"fulfilledWith":"ANCHOR",'
        b'"anchors":[{"macAddress":"00:00:5e:00:53:01","name":"hall"}],'
        b'"alt":{"loc":{"lat":63,"lon":10,"uncertainty":1500,"fulfilledWith":"MCELL"},"dist":800}}'
    )
    position = Response(200, {}, body).decode(Position)
    assert position.anchors == [{"macAddress": "00:00:5e:00:53:01", "name": "hall"}]
    assert isinstance(position.alt, dict)
    assert position.alt["dist"] == 800
    shown = position_to_json(position)
    assert (shown["anchors"], shown["alt"]) == (position.anchors, position.alt)
    assert sorted(position.answer()) == ["fulfilledWith", "lat", "lon", "uncertainty"]


@pytest.mark.parametrize("more", ['"anchors":{}', '"anchors":[1]', '"alt":7', '"alt":["x"]'])
def test_a_position_counts_whatever_form_the_rest_of_its_answer_has(more: str) -> None:
    position = Response(200, {}, f'{{"lat":1,"lon":-2,{more}}}'.encode()).decode(Position)
    assert (position.lat, position.lon) == (1.0, -2.0)
    assert position.answer() == {"lat": 1.0, "lon": -2.0}


def test_the_numbers_of_a_position_may_be_texts_as_in_the_history() -> None:
    body = b'{"lat":"63.41999531","lon":"-122.688408","uncertainty":"13.012","new":[1]}'
    assert Response(200, {}, body).decode(Position) == Position(63.41999531, -122.688408, 13.012)


def test_a_position_without_uncertainty_is_a_position() -> None:
    assert Response(200, {}, b'{"lat":1,"lon":-2}').decode(Position) == Position(1.0, -2.0)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "expected JSON"),
        (b"<html>", "expected JSON"),
        (b"\xff\xfe", "expected JSON"),
        (b"[1]", "another shape: Expected `object`"),
        (b"{}", "lat"),
        (b'{"lat":91,"lon":0}', r"<= 90.0 - at `\$.lat"),
        (b'{"lat":0,"lon":180.1}', r"<= 180.0 - at `\$.lon"),
        (b'{"lat":"north","lon":0}', r"Expected `float`, got .* - at `\$.lat"),
        (b'{"lat":"nan","lon":0}', r"- at `\$.lat"),
        (b'{"lat":"91","lon":0}', r"<= 90.0 - at `\$.lat"),
        (b'{"lat":"1e999","lon":0}', r"- at `\$.lat"),
        (b'{"lat":true,"lon":0}', r"Expected `float`, got .* - at `\$.lat"),
        (b'{"lat":NaN,"lon":0}', "expected JSON"),
        (b'{"lat":1' + b"0" * 400 + b',"lon":0}', "another shape"),
        (b'{"lat":1e999,"lon":0}', "another shape|outside"),
        (b'{"lat":1,"lon":0,"uncertainty":-1}', "uncertainty"),
        (b'{"lat":1,"lon":0,"fulfilledWith":7}', "fulfilledWith"),
        (b"[" * 100_000, "another shape: Expected `object`"),
    ],
)
def test_what_is_no_position_is_refused_by_name(body: bytes, words: str) -> None:
    with pytest.raises(BadAnswer, match=words):
        Response(200, {}, body).decode(Position)


def test_a_degree_of_latitude_is_111_km() -> None:
    assert Position(10.0, 20.0).distance_m(11.0, 20.0) == pytest.approx(111_195, abs=1)


def test_a_degree_of_longitude_at_sixty_degrees_is_half_of_that_also_across_the_date_line() -> None:
    across = Position(60.0, 179.5).distance_m(60.0, -179.5)
    assert across == pytest.approx(111_195 / 2, abs=2)
