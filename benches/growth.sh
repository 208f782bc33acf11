#!/usr/bin/env bash
# How time and memory of each job grow with the number of sessions and with their size. Writes benches/growth.tsv,
# benches/GROWTH.md and benches/growth.svg.
#
#   benches/growth.sh [JOB…]     JOB: migrate check index commit backup drill relay archive named rotate browse nightly
#   benches/growth.sh render     the page again from benches/growth.tsv, nothing measured
#
# Each job replaces its own rows. docs/performance.md says how to read them.
#
# Environment:
#   COUNTS="100 1000 10000"   sessions, each of 16 files and 18 KB
#   LARGE=1000                of so many also with ten times the bytes in as many files
#   RUNS=3                    of which the median counts
#   GROWTH_DIR=/dev/shm       a folder on tmpfs: what the disk does is no matter of growth
#   ROTATE_DIR=target/bench   a folder on ext4 or XFS: elsewhere no log is cut in place
#   CARGO_TARGET_DIR          where cargo builds   [target]
#   BUILD=                    empty: take the programs that are there
#
# Needs: bash 5, cargo, GNU time (/usr/bin/time), perl, jq.
set -euo pipefail
export LC_ALL=C.UTF-8
unset WBHOME CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly ALL_JOBS="migrate check index commit backup drill relay archive named rotate browse nightly"
readonly RUNS=${RUNS:-3} LARGE=${LARGE:-1000}
read -ra counts <<<"${COUNTS:-100 1000 10000}"
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
readonly TARGET WBHOME_BIN=$TARGET/release/wbhome SCALE_HOME=$TARGET/release/examples/scale_home
readonly OLD="/Users/me/Cloud Drive/workbuddy_home"
readonly TSV=benches/growth.tsv

say() { printf '%s\n' "$*" >&2; }
die() { say "growth.sh: $*"; exit 1; }

# Sessions in the home, how many times the bytes, and where all of it lies.
SESSIONS='' BYTES='' WORK=''
leave() { [[ -z $WORK ]] || rm -rf -- "$WORK" "${WORK_ON_DISK-}"; }
trap leave EXIT
trap 'exit 130' INT TERM

# Runs a command; its milliseconds and the peak of its memory come after those of the runs before. `check` exits with 4.
declare -A took=() peak=()
timed() { # ROW COMMAND…
  local row=$1 begin end code=0
  shift
  begin=$EPOCHREALTIME
  /usr/bin/time -q -f %M -o "$WORK/peak" -- "$@" >"$WORK/out" 2>"$WORK/err" || code=$?
  end=$EPOCHREALTIME
  ((code == 0 || code == 4)) || { tail -n 5 "$WORK/err" >&2; die "failed with $code: $*"; }
  took[$row]+=" $(awk -v us=$((${end/./} - ${begin/./})) 'BEGIN { printf "%.1f", us / 1000 }')"
  peak[$row]+=" $(tail -n 1 "$WORK/peak")"
}
wb() { "$WBHOME_BIN" "$@" --home "$WORK/home" --quiet; }
times() { local n; for ((n = 0; n < RUNS; n++)); do "$@"; done; }

# ── jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
# One run of each, on the home in $WORK/home. Each leaves the home as it was.

job_migrate() {
  timed migrate "$WBHOME_BIN" migrate "$WORK/source" "$WORK/new" --map "$OLD=$WORK/new" --no-state --yes --quiet --no-progress
  rm -rf "$WORK/new"
}

job_check() { timed check "$WBHOME_BIN" check --home "$WORK/home"; }

job_index() {
  timed index "$WBHOME_BIN" index --home "$WORK/home" --quiet
  timed 'index --rebuild' "$WBHOME_BIN" index --rebuild --home "$WORK/home" --quiet
}

job_commit() {
  cp -a "$WORK/home/.git" "$WORK/git"
  timed 'commit, first' "$WBHOME_BIN" commit --home "$WORK/home" --quiet --no-progress
  timed 'commit, nothing changed' "$WBHOME_BIN" commit --home "$WORK/home" --quiet --no-progress
  rm -rf "$WORK/home/.git"
  mv "$WORK/git" "$WORK/home/.git"
}

job_backup() {
  cp "$WORK/home/wbhome.toml" "$WORK/settings"
  wb backup init "$WORK/store" 2>/dev/null
  timed 'backup run, first' "$WBHOME_BIN" backup run --home "$WORK/home" --quiet --no-progress
  timed 'backup run, nothing changed' "$WBHOME_BIN" backup run --home "$WORK/home" --quiet --no-progress
  timed 'restore --all' "$WBHOME_BIN" restore --all --from "$WORK/store" --to "$WORK/new" --quiet --no-progress
  cp "$WORK/settings" "$WORK/home/wbhome.toml"
  rm -rf "$WORK/store" "$WORK/new"
}

job_relay() {
  [[ -f $WORK/tagged ]] || (cd "$WORK/home/sessions" && printf '%s\0' * | xargs -0 "$WBHOME_BIN" label --home "$WORK/home" --quiet --sync-tag all --)
  touch "$WORK/tagged"
  cp "$WORK/home/wbhome.toml" "$WORK/settings"
  wb relay init "$WORK/relay" --mode clone
  timed 'relay sync, first' "$WBHOME_BIN" relay sync --home "$WORK/home" --quiet --no-progress
  timed 'relay sync, nothing changed' "$WBHOME_BIN" relay sync --home "$WORK/home" --quiet --no-progress
  cp "$WORK/settings" "$WORK/home/wbhome.toml"
  rm -rf "$WORK/relay" "$WORK/home/.wbhome/relay.json"
}

job_archive() {
  local ids
  mapfile -t ids < <(ls "$WORK/home/sessions")
  timed archive "$WBHOME_BIN" archive --home "$WORK/home" --quiet --no-progress "${ids[@]}"
  timed unarchive "$WBHOME_BIN" unarchive --home "$WORK/home" --quiet --no-progress "${ids[@]}"
}

job_drill() {
  cp "$WORK/home/wbhome.toml" "$WORK/settings"
  wb backup init "$WORK/store" 2>/dev/null
  wb backup run
  timed drill "$WBHOME_BIN" drill --home "$WORK/home" --quiet --no-progress
  cp "$WORK/settings" "$WORK/home/wbhome.toml"
  rm -rf "$WORK/store"
}

# What takes the names of sessions is given all of them.
job_named() {
  local ids act
  mapfile -t ids < <(ls "$WORK/home/sessions")
  timed label "$WBHOME_BIN" label --home "$WORK/home" --quiet --tag growth "${ids[@]}"
  "$WBHOME_BIN" label --home "$WORK/home" --quiet --untag growth "${ids[@]}"
  mkdir "$WORK/out-of-it"
  timed export "$WBHOME_BIN" export --home "$WORK/home" --quiet --no-progress --to "$WORK/out-of-it" "${ids[@]}"
  rm -rf "$WORK/out-of-it"
  timed rm "$WBHOME_BIN" rm --home "$WORK/home" --quiet --yes "${ids[@]}"
  act=$("$WBHOME_BIN" restore --from trash --home "$WORK/home" --json | jq -r '.acts[0].act')
  timed 'restore, out of the trash' "$WBHOME_BIN" restore --from trash --home "$WORK/home" --quiet "$act"
}

# The logs alone, on a disk. Nothing is deleted there before the end: see `settle` in compare.sh.
job_rotate() {
  local home
  home=$(mktemp -d "$WORK_ON_DISK/XXXXXX")
  (cd "$WORK/source" && find sessions -name logs -type d -print0 | tar --null -T - -cf -) | tar -C "$home" -xf -
  "$WBHOME_BIN" init "$home" --quiet
  sync -f "$home"
  timed rotate "$WBHOME_BIN" rotate --home "$home" --force --quiet --no-progress
}

job_browse() {
  timed ls "$WBHOME_BIN" ls --home "$WORK/home"
  timed 'ls --long' "$WBHOME_BIN" ls --long --home "$WORK/home"
  timed 'search, found nowhere' "$WBHOME_BIN" search --home "$WORK/home" 'nobody-[0-9]+-wrote-this'
  timed 'search, found often' "$WBHOME_BIN" search --home "$WORK/home" --no-pager '销售表'
  timed 'completion of an id' env COMPLETE=bash WBHOME="$WORK/home" "$WBHOME_BIN" -- 'wbhome show 2' '' 2 9 80
}

# With a store and a relay, when nothing has changed since the night before. It is the last one.
job_nightly() {
  if [[ ! -d $WORK/store ]]; then
    wb backup init "$WORK/store" 2>/dev/null
    wb relay init "$WORK/relay" --mode clone
    "$WBHOME_BIN" nightly --home "$WORK/home" --quiet --no-progress >/dev/null
  fi
  timed 'nightly, nothing changed' "$WBHOME_BIN" nightly --home "$WORK/home" --quiet --no-progress
}

# ── measuring ─────────────────────────────────────────────────────────────────────────────────────────────────────────

measure() { # SESSIONS BYTES JOB…
  SESSIONS=$1 BYTES=$2
  shift 2
  local log=1 artifacts=2 job row
  if ((BYTES == 10)); then log=40 artifacts=136; fi
  WORK=$(mktemp -d "${GROWTH_DIR:-/dev/shm}/wbhome-growth.XXXXXX")
  mkdir -p "${ROTATE_DIR:-target/bench}"
  WORK_ON_DISK=$(mktemp -d "${ROTATE_DIR:-target/bench}/wbhome-growth.XXXXXX")
  "$SCALE_HOME" "$WORK/source" --sessions "$SESSIONS" --turns 3 --log-kb $log --artifact-kb $artifacts --old-path "$OLD" >&2
  # A session a day leads into the future, and what was written there is read again by whoever looks for changes.
  find "$WORK/source" -newermt now -print0 | xargs -0r touch -h -d 2026-01-01
  cp -a "$WORK/source" "$WORK/home"
  "$WBHOME_BIN" init "$WORK/home" --quiet
  export XDG_DATA_HOME=$WORK/data
  for job in "$@"; do
    took=() peak=()
    times "job_$job"
    for row in "${!took[@]}"; do record "$row" "${took[$row]}" "${peak[$row]}"; done
  done
  leave
  WORK=''
}

readonly COLUMNS_OF_TSV="job sessions bytes ms mib runs date commit load"
record() { # ROW "MS…" "KIB…"
  local line
  line=$(printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s' "$1" "$SESSIONS" "$BYTES" \
    "$(tr ' ' '\n' <<<"$2" | sort -n | awk 'NF { v[++n] = $1 } END { printf "%.1f", n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2 }')" \
    "$(tr ' ' '\n' <<<"$3" | sort -n | awk 'END { printf "%.1f", $1 / 1024 }')" \
    "$(tr ' ' ',' <<<"${2# }")" "$(date -u +%F)" "$(git rev-parse --short HEAD)" "$(cut -d ' ' -f 1 /proc/loadavg)")
  {
    tr ' ' '\t' <<<"$COLUMNS_OF_TSV"
    {
      [[ ! -f $TSV ]] || awk -F '\t' -v job="$1" -v n="$SESSIONS" -v b="$BYTES" 'NR > 1 && !($1 == job && $2 == n && $3 == b)' "$TSV"
      printf '%s\n' "$line"
    } | sort -t $'\t' -k 1,1 -k 2,2n -k 3,3n
  } >"$TSV.new"
  mv "$TSV.new" "$TSV"
  say "$1, $SESSIONS sessions, $BYTES × the bytes:$2 ms"
}

render() { perl benches/growth.pl "$TSV" benches/GROWTH.md benches/growth.svg; }

if [[ ${1-} = render ]]; then
  render
  exit
fi
jobs=("$@")
((${#jobs[@]})) || read -ra jobs <<<"$ALL_JOBS"
for job in "${jobs[@]}"; do declare -F "job_$job" >/dev/null || die "$job: no such job; there are: $ALL_JOBS"; done
if [[ -n ${BUILD-yes} ]]; then cargo build --quiet --release --locked --bin wbhome --example scale_home; fi
for n in "${counts[@]}"; do
  measure "$n" 1 "${jobs[@]}"
  if ((n == LARGE)); then measure "$n" 10 "${jobs[@]}"; fi
done
render
say 'written: benches/growth.tsv, benches/GROWTH.md, benches/growth.svg'
