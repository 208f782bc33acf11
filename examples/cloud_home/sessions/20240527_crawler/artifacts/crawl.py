#!/Users/mei/Cloud Drive/workbuddy_home/.venv/bin/python
"""Reads the open-data catalogue page by page into listing.csv."""
import argparse, csv, os, random, time, urllib.error, urllib.request

ROOT = "/Users/mei/Cloud Drive/workbuddy_home/sessions/20240527_crawler"
OUT = os.path.join(ROOT, "artifacts", "listing.csv")
BASE = "https://data.example.org/catalogue?page=%d"


def fetch(page, attempt=0):
    try:
        with urllib.request.urlopen(BASE % page, timeout=30) as reply:
            return reply.read().decode("utf-8")
    except urllib.error.HTTPError as error:
        if error.code != 429 or attempt >= 5:
            raise
        wait = int(error.headers.get("Retry-After", "30"))
        print(f"page {page}: HTTP 429, waiting {wait} s")
        time.sleep(wait + random.random())
        return fetch(page, attempt + 1)


def last_page():
    with open(OUT, encoding="utf-8") as f:
        return max((int(row["page"]) for row in csv.DictReader(f)), default=0)


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--pages", default="1-22")
    p.add_argument("--resume", action="store_true")
    args = p.parse_args()
    first, last = map(int, args.pages.split("-"))
    if args.resume:
        first = last_page() + 1
    for page in range(first, last + 1):
        fetch(page)
        time.sleep(2)
