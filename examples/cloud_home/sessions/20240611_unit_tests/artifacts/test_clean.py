"""Cases from the May table."""
import sys

sys.path.insert(0, "/Users/mei/Cloud Drive/workbuddy_home/sessions/20240604_数据清洗/artifacts")
import clean


def test_dates():
    assert clean.date("2024/5/3") == "2024-05-03"
    assert clean.date("2024.05.03") == "2024-05-03"
    assert clean.date("5月4日") == "2024-05-04"


def test_amount_without_decimals():
    row = {"订单号": "1", "地区": "华东", "金额": "1,288", "日期": "5月4日"}
    assert clean.clean(row)[2] == "1288.00"
