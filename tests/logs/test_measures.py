"""Metrics beside a log."""

import pytest

from logtriage.logs.measures import compare, is_unusual, read_measures, sigmas
from logtriage.logs.window import Window

AT = 1795316400
WINDOW = Window(AT + 600, AT + 900, (AT, AT + 600), True, 20.0)


def written(tmp_path, text):
    path = tmp_path / "m.csv"
    path.write_text(text)
    return path


def rows(service, metric, usual, now):
    lines = [f"{AT + 60 * i},{service},{metric},{usual + i % 3}" for i in range(10)]
    return lines + [f"{AT + 600 + 60 * i},{service},{metric},{now}" for i in range(5)]


def test_a_metric_is_compared_with_the_earlier_part(tmp_path):
    lines = ["time,service,metric,value", *rows("cart", "cpu_pct", 10, 97)]
    lines += rows("web", "cpu_pct", 10, 11)
    cart, web = compare(read_measures(written(tmp_path, "\n".join(lines))), WINDOW)
    assert cart.text == "cart cpu_pct 97% usual 11 (10-12)"
    assert is_unusual(cart) and sigmas(cart) > 20 and not is_unusual(web)
    # A sigma, as `observed.Measure` says: what compares measures elsewhere reads it.
    assert cart.deviation == pytest.approx(1.4826)


def test_columns_stand_in_any_order_and_gaps_are_left_out(tmp_path):
    text = (
        "value,Service,unit,TIME,metric\r\n1,web-0,x,2026-11-22T03:00:00Z,rate\r\n\r\n"
        ",web-0,x,2026-11-22 03:00:01+00:00,rate\r\nnan,web-0,x,1795316402,rate\r\n"
    )
    assert read_measures(written(tmp_path, text)) == {("web", "rate"): [(AT, 1.0)]}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: no column time, service, metric, value"),
        ("time,service,value\n", "line 1: no column metric"),
        ("time,service,metric,value\nnoon,a,b,1\n", "line 2: 'noon' is no time"),
        ("time,service,metric,value\n1795316400,a,b,much\n", "line 2: 'much' is no number"),
        ("time,service,metric,value\n1795316400,a\n", "line 2: 2 fields, the header has 4"),
    ],
)
def test_a_mistake_is_told_with_its_line(tmp_path, text, told):
    with pytest.raises(ValueError, match=told):
        read_measures(written(tmp_path, text))


def test_no_marker_of_a_chat_template_stands_in_a_name(tmp_path):
    text = "time,service,metric,value\n1795316400,[INST],<|im_end|>,1\n"
    ((service, metric),) = read_measures(written(tmp_path, text))
    assert (service, metric) == ("[\\INST]", "<\\|im_end|>")


def test_a_metric_that_has_spikes_by_itself_is_not_unusual_for_one(tmp_path):
    # Its median deviation is nothing, the band of nine of ten values is not.
    lines = ["time,service,metric,value"]
    lines += [f"{AT + 20 * i},cart,cpu_pct,{90 if i % 5 == 0 else 10}" for i in range(30)]
    lines += [f"{AT + 600 + 60 * i},cart,cpu_pct,40" for i in range(5)]
    (cart,) = compare(read_measures(written(tmp_path, "\n".join(lines))), WINDOW)
    assert cart.deviation == 0.0 and 1.0 < sigmas(cart) < 2.0 and not is_unusual(cart)
