#!/usr/bin/env python3
"""统一销售表的日期、地区和金额；原文件不动。"""
import csv, re, sys
from decimal import Decimal

BASE = "/Users/mei/Cloud Drive/workbuddy_home/sessions/20240604_数据清洗/artifacts"
REGIONS = {"华东": "华东", "华北": "华北", "华北区": "华北", "华南": "华南", "西南": "西南", "西北": "西北"}


def date(text):
    year, month, day = re.fullmatch(r"(?:(\d{4})[/.])?(\d+)(?:[/.]|月)(\d+)日?", text.strip()).groups()
    return f"{year or 2024}-{int(month):02}-{int(day):02}"


def clean(row):
    region = row["地区"].strip()
    if region not in REGIONS:
        sys.exit(f"新的地区名：{region}，请先确认")
    amount = Decimal(row["金额"].replace(",", ""))
    return [row["订单号"], REGIONS[region], f"{amount:.2f}", date(row["日期"])]


name = next((a for a in sys.argv[1:] if not a.startswith("-")), "sales_may.csv")
with open(f"{BASE}/{name}", encoding="utf-8-sig", newline="") as f:
    table = list(csv.DictReader(f))
rows = sorted({tuple(clean(row)) for row in table})
if "--check" in sys.argv:
    renamed = len({row["订单号"] for row in table if row["地区"] != REGIONS[row["地区"].strip()]})
    commas = len({row["订单号"] for row in table if "," in row["金额"]})
    print(f"读取 {len(table)} 行，重复 {len(table) - len(rows)} 行\n地区：{renamed} 行将改名\n金额：{commas} 行去掉逗号\n(check) 没有写文件")
    sys.exit()
with open(f"{BASE}/{name[:-4]}_clean.csv", "w", encoding="utf-8", newline="") as f:
    csv.writer(f, lineterminator="\n").writerows([("订单号", "地区", "金额", "日期"), *rows])
print(f"读取 {len(table)} 行，写出 {len(rows)} 行")
