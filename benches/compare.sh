#!/usr/bin/env bash
# Races wbhome against the tools that people would use without it, and writes benches/RESULTS.md.
#
#   benches/compare.sh [JOB…]     JOB: migrate migrate-floor memory commit archive archive-large
#                                      backup restore rotate rotate-lost rotate-large search
#                                      search-archived relay start ls complete (default: all)
#   benches/compare.sh render     RESULTS.md again from benches/results.tsv, nothing measured
#
# Each job replaces its own rows in benches/results.tsv and leaves the others. A trial (fewer than 400 sessions, 5 runs
# or 5 GB of log) proves nothing: its results stay in the bench folder. docs/performance.md says how to read them.
#
# Environment:
#   RUNS=5                timed runs a side, after one that warms up and is checked
#   SESSIONS=420          of the generated home: 121 files and 0.7 MB each
#   LOG_MIB=5120          the log of `memory`
#   PLACES="disk shm"     where: WBHOME_BENCH_DIR, SHM_DIR, or both
#   WBHOME_BENCH_DIR      a folder on the disk to race on   [target/bench]
#   SHM_DIR=/dev/shm      a folder on tmpfs
#   TRANSCRIPT=FILE       a real transcript to repeat in the home [none]
#   SETTLE=400            seconds to wait after an earlier race deleted its files on the disk (see `settle`)
#   KEEP=1                leave what was made, to look at
#   CARGO_TARGET_DIR      where cargo builds                [target]
#   BUILD=                empty: take the programs that are there
#
# Needs: bash 5, cargo, rsync, GNU time (/usr/bin/time), perl, git, GNU tar, and zstd; restic and borg for `backup`,
# restic for `restore`; logrotate for `rotate`; ripgrep for `search`.
#
# Backticks in single quotes are Markdown, and `$1` in them belongs to the shell that is started:
# shellcheck disable=SC2016
set -euo pipefail
export LC_ALL=C.UTF-8
unset WBHOME CDPATH

cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly ALL_JOBS="migrate migrate-floor memory commit archive archive-large backup restore rotate rotate-lost rotate-large search search-archived relay start ls complete"
readonly RUNS=${RUNS:-5} SESSIONS=${SESSIONS:-420} LOG_MIB=${LOG_MIB:-5120}
readonly PLACES=${PLACES:-disk shm} SHM_DIR=${SHM_DIR:-/dev/shm} SETTLE=${SETTLE:-400} KEEP=${KEEP:-}
TARGET=$(realpath -m "${CARGO_TARGET_DIR:-target}")
BENCH_DIR=$(realpath -m "${WBHOME_BENCH_DIR:-$TARGET/bench}")
readonly TARGET BENCH_DIR
readonly TRANSCRIPT=${TRANSCRIPT-}
readonly WBHOME_BIN=$TARGET/release/wbhome SCALE_HOME=$TARGET/release/examples/scale_home
# What the files of the generated home call its place. Nothing in it means anything to sed.
readonly OLD="/Users/me/Cloud Drive/workbuddy_home"
readonly STAMP=$BENCH_DIR/.deleted

say() { printf '%s\n' "$*" >&2; }
die() { say "compare.sh: $*"; exit 1; }

# ── places ────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A place is a new folder on one filesystem, with an input of its own. All that is deleted, is deleted by `leave`.

PLACE='' FS='' MOUNT='' SRC='' INPUT=''
FOLDERS=()

enter() { # disk | shm; fails when there is no room there
  local parent
  case $1 in
    disk) parent=$BENCH_DIR ;;
    shm) parent=$SHM_DIR ;;
    *) die "PLACES: $1 is neither disk nor shm" ;;
  esac
  [[ $1 = disk ]] && mkdir -p "$parent"
  [[ -d $parent && -w $parent ]] || { say "$parent: no such folder to write in, nothing measured there"; return 1; }
  FS=$(findmnt -no FSTYPE -T "$parent" | tail -n 1)
  # Both sides of a race, and half as much again for what is not content. A disk keeps the races of all jobs.
  local copies=$((2 * RUNS + 3))
  [[ $1 = shm ]] || copies=$((copies * ${#at_places[@]}))
  has_room "$parent" $((SESSIONS * copies * 900 * 3 / 2)) $((SESSIONS * 121 * copies)) ||
    { say "$parent: nothing measured there"; return 1; }
  if [[ $1 = disk ]]; then settle; fi
  PLACE=$(mktemp -d "$parent/wbhome-race.XXXXXX")
  FOLDERS+=("$PLACE")
  SRC=$PLACE/source INPUT=''
  MOUNT=$FS
  if [[ $FS = ext4 ]]; then
    local device
    device=$(basename "$(realpath "$(findmnt -no SOURCE -T "$parent" | tail -n 1)")")
    # Only a filesystem with a journal has a folder here.
    if ! compgen -G "/proc/fs/jbd2/$device-*" >/dev/null; then MOUNT+=' without a journal'; fi
  fi
  say "── $MOUNT: $PLACE"
}

# On ext4 without a journal, whoever makes files passes one by one over inodes deleted in the last minutes (RECENTCY_MIN
# and RECENTCY_DIRTY in fs/ext4/ialloc.c, 360 s together): `cp -a` takes ten times as long.
settle() {
  local then=0 left
  [[ -f $STAMP ]] && then=$(<"$STAMP")
  left=$((then + SETTLE - EPOCHSECONDS))
  ((left > 0)) || return 0
  say "an earlier race deleted its files here a moment ago: waiting $left s (SETTLE=0 does not)"
  sleep "$left"
}

has_room() { # FOLDER KIB FILES
  local kib files free
  read -r kib files < <(df -k --output=avail,iavail "$1" | tail -n 1)
  if [[ $(findmnt -no FSTYPE -T "$1" | tail -n 1) = tmpfs ]]; then
    free=$(awk '/^MemAvailable:/ { print int($2 * 0.8) }' /proc/meminfo)
    kib=$((free < kib ? free : kib))
  fi
  # A filesystem may not count its files.
  [[ $files = 0 || $files = - ]] && files=$3
  ((kib >= $2 && files >= $3)) && return 0
  say "$1: $((kib / 1024)) MiB and $files files free, $(($2 / 1024)) MiB and $3 files needed"
  return 1
}

# shellcheck disable=SC2317 # called by the trap
leave() {
  local folder
  for folder in "${FOLDERS[@]}"; do
    if [[ -n $KEEP ]]; then
      say "kept: $folder"
      continue
    fi
    rm -rf -- "$folder"
    if [[ $folder = "$BENCH_DIR"/* ]]; then printf '%s\n' "$EPOCHSECONDS" >"$STAMP"; fi
  done
}
trap leave EXIT
trap 'exit 130' INT TERM

# After a job. Memory must be given back; on a disk nothing is deleted while there is more to measure.
done_with() { # FOLDER
  [[ $FS = tmpfs && -z $KEEP ]] || return 0
  rm -rf -- "$1"
}

# ── inputs ────────────────────────────────────────────────────────────────────────────────────────────────────────────

need_input() { # sets SRC's content, once a place
  [[ -z $INPUT ]] || return 0
  say "writing a home of $SESSIONS sessions"
  "$SCALE_HOME" "$SRC" --sessions "$SESSIONS" --old-path "$OLD" >&2
  # The first session again, each of its turns holding the whole context before it: the same names, so it takes its place.
  "$SCALE_HOME" "$PLACE/snapshots" --sessions 1 --snapshots --old-path "$OLD" >&2
  local first second
  first=$(basename "$PLACE"/snapshots/sessions/*)
  mv "$SRC/sessions/$first" "$PLACE/replaced"
  mv "$PLACE/snapshots/sessions/$first" "$SRC/sessions/"
  INPUT='one session with a whole-context snapshot a turn'
  if [[ -f $TRANSCRIPT ]]; then
    second=$(find "$SRC/sessions" -mindepth 1 -maxdepth 1 -type d ! -name "$first" | sort | head -n 1)
    local n
    for ((n = 0; n < 40; n++)); do cat "$TRANSCRIPT"; done >"$second/context/transcript.jsonl"
    INPUT+=", a real transcript 40 times"
  fi
  local files bytes
  files=$(find "$SRC" -type f | wc -l)
  bytes=$(find "$SRC" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%.0f", sum / 1e6 }')
  INPUT="$SESSIONS sessions, $files files, $bytes MB, $INPUT"
  sync -f "$SRC"
  say "input: $INPUT"
}

# ── running ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MS='' KIB=''

# Runs a command: its milliseconds into MS, the peak memory of its largest process into KIB.
run() {
  local log=$PLACE/log begin end
  begin=$EPOCHREALTIME
  /usr/bin/time -q -f %M -o "$PLACE/peak" -- "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "failed: $*"
  }
  end=$EPOCHREALTIME
  MS=$(awk -v us=$((${end/./} - ${begin/./})) 'BEGIN { printf "%.1f", us / 1000 }')
  KIB=$(tail -n 1 "$PLACE/peak")
}

# The sides of the races: FROM, TO, and what OLD becomes. What runs inside is the shell's $1 $2 $3 $4.
readonly MIGRATE='"$0" migrate "$1" "$2" --map "$3=$4" --no-state --yes --no-progress --quiet && sync -f "$2"'
readonly RSYNC_SED='rsync -a "$1/" "$2/" && grep -rlZF -- "$3" "$2" | xargs -0 sed -i "s#$3#$4#g" && sync -f "$2"'
readonly CP='cp -a "$1" "$2" && sync -f "$2"'
ours() { run bash -o pipefail -c "$MIGRATE" "$WBHOME_BIN" "$SRC" "$1" "$OLD" "$2"; }
rsync_sed() { run bash -o pipefail -c "$RSYNC_SED" peer "$SRC" "$1" "$OLD" "$2"; }
cp_a() { run bash -c "$CP" peer "$SRC" "$1"; }

median() { # NUMBER…
  printf '%s\n' "$@" | sort -n |
    awk '{ v[NR] = $1 } END { printf "%.1f", NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'
}
largest() { printf '%s\n' "$@" | sort -n | tail -n 1; }
joined() { local IFS=,; printf '%s' "$*"; }
mib() { awk -v kib="$1" 'BEGIN { printf "%.1f", kib / 1024 }'; }

# Ours and a peer in turn. Each run writes into a folder of its own; the first of each side warms up and is checked.
race() { # JOB TITLE AIM PEER-FUNCTION PEER-NAME CHECK-FUNCTION
  local job=$1 title=$2 aim=$3 peer=$4 peer_name=$5 check=$6
  need_input
  local work=$PLACE/$job n
  local our_ms=() our_kib=() peer_ms=() peer_kib=()
  mkdir "$work"
  load_now
  ours "$work/ours-0" "$work/ours-0"
  "$peer" "$work/peer-0" "$work/ours-0"
  "$check" "$SRC" "$work/ours-0" "$work/peer-0" || die "$job: the two sides did not do the same job"
  for ((n = 1; n <= RUNS; n++)); do
    sync -f "$work"
    ours "$work/ours-$n" "$work/ours-$n"
    our_ms+=("$MS") our_kib+=("$KIB")
    sync -f "$work"
    "$peer" "$work/peer-$n" "$work/peer-$n"
    peer_ms+=("$MS") peer_kib+=("$KIB")
    say "$job $n/$RUNS on $FS: ours ${our_ms[-1]} ms, $peer_name ${peer_ms[-1]} ms"
  done
  record job "$job" fs "$FS" title "$title" peer "$peer_name" kind ratio aim "$aim" \
    ours "$(median "${our_ms[@]}")" theirs "$(median "${peer_ms[@]}")" \
    our_runs "$(joined "${our_ms[@]}")" their_runs "$(joined "${peer_ms[@]}")" \
    our_mib "$(mib "$(largest "${our_kib[@]}")")" their_mib "$(mib "$(largest "${peer_kib[@]}")")" \
    input "$INPUT" command "$job"
  done_with "$work"
}

# ── checks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Both hold each entry of the source, as what it is there; the peer nothing more, ours nothing but what makes it a home.
same_entries() { # SRC OURS PEER
  local name=$PLACE/names own='^(archive|projects|projects/.*|wbhome\.toml|\.gitignore|\.wbhome|\.wbhome/.*) '
  (cd "$1" && find . -mindepth 1 -printf '%P %y\n' | sort) >"$name.source"
  (cd "$2" && find . -mindepth 1 -printf '%P %y\n' | grep -Ev "$own" | sort) >"$name.ours"
  (cd "$3" && find . -mindepth 1 -printf '%P %y\n' | sort) >"$name.peer"
  diff "$name.source" "$name.ours" >&2 && diff "$name.source" "$name.peer" >&2 &&
    say "check: the same $(wc -l <"$name.source") entries on both sides"
}

# Both have made the same bytes of every line whose only references are plain ones, and these are the bytes that were
# expected. Left out are lines that also hold another spelling (which sed does not find) or what only looks like a
# reference (which sed changes all the same). What ours calls binary is as it was.
same_bytes() { # SRC OURS PEER, the peer's references rewritten to OURS
  same_entries "$@" || return 1
  perl - "$OLD" "$@" <<'PERL'
use strict; use warnings; use File::Find;
my ($old, $src, $ours, $peer) = @ARGV;
my $new = $ours;
my ($base) = $old =~ m{([^/]+)$};
(my $any = quotemeta $base) =~ s/_/[_-]/g;
my %n = map { $_ => 0 } qw(files references lines left binary bad);
sub slurp { open my $f, '<:raw', $_[0] or die "$_[0]: $!\n"; local $/; my $t = <$f>; defined $t ? $t : '' }
sub bad { print STDERR "check: $_[0]\n"; exit 1 if ++$n{bad} >= 10 }
find({ no_chdir => 1, wanted => sub {
  return if -l $_ || !-f _;
  (my $rel = $_) =~ s/^\Q$src\E\///;
  my ($a, $b) = (slurp($_), slurp("$ours/$rel"));
  $n{files}++;
  if (index(substr($a, 0, 65536), "\0") >= 0) {
    $n{binary}++;
    bad("$rel: binary, and ours changed it") if $a ne $b;
    return;
  }
  # Ours brings the index into agreement with the disk.
  return if $rel eq 'index.json';
  my @a = split /\n/, $a, -1; my @b = split /\n/, $b, -1; my @c = split /\n/, slurp("$peer/$rel"), -1;
  return bad("$rel: lines " . @a . ", ours " . @b . ", peer " . @c) if @a != @b || @a != @c;
  for my $i (0 .. $#a) {
    my $want = $a[$i];
    my $count = $want =~ s{(?<![^\s"'=(<\[|`,:])\Q$old\E(?=[/"'`,;)>\]|\r]|$)}{$new}g;
    (my $rest = $want) =~ s/\Q$new\E//g;
    $rest =~ s{/Volumes/old-mac/\Q$base\E}{}g;
    if ($rest =~ /$any/i) { $n{left}++; next }
    $n{lines}++; $n{references} += $count || 0;
    bad("$rel:" . ($i + 1) . ": ours is not what was expected") if $b[$i] ne $want;
    bad("$rel:" . ($i + 1) . ": the peer's is not what was expected") if $c[$i] ne $want;
  }
} }, "$src");
print STDERR "check: $n{files} files ($n{binary} binary, untouched by ours): the same bytes in $n{lines} lines with ",
  "$n{references} plain references; $n{left} lines with other spellings or lookalikes left out\n";
exit($n{bad} || !$n{references} ? 1 : 0);
PERL
}

# ── jobs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
# One function a job, `-` as `_`. `here_JOB` for jobs that need no place.

job_migrate() {
  race migrate 'migrate (copy, rewrite, read back, compare)' 0.4 \
    rsync_sed '`rsync -a`, `grep -rlZF \| xargs -0 sed -i`' same_bytes
}

job_migrate_floor() {
  race migrate-floor 'migrate against the floor' 1.0 cp_a '`cp -a`' same_entries
}

job_memory() {
  memory_of_files
  memory_of_log
  memory_of_verbs
}

# Every verb that looks at a home, on one of 50,000 files: the peak of each. A row is called after what was run.
memory_of_verbs() {
  need_input
  local work=$PLACE/memory-verbs home=$PLACE/memory-verbs/home ids one
  mkdir "$work"
  cp -a "$SRC" "$home"
  mapfile -t ids < <(ls "$home/sessions")
  one=${ids[7]}
  load_now
  export XDG_DATA_HOME=$work/data
  memory_of 200 init "$home"
  export WBHOME=$home
  memory_of 200 index --rebuild
  memory_of 200 index
  memory_of 200 check
  memory_of 200 ls --long
  memory_of 200 du
  memory_of 200 show "$one"
  memory_of 200 search '销售表'
  memory_of 200 commit
  printf '{"role": "user", "content": "one more"}\n' >"$home/sessions/$one/context/turn_900.json"
  memory_of 200 diff "$one"
  "$WBHOME_BIN" commit --quiet "$one"
  memory_of 200 history "$one"
  memory_of 200 commit --consolidate
  memory_of 200 relink "$OLD" /somewhere/else --no-state --force
  memory_of 200 rotate --force
  memory_of 200 label "${ids[@]}" --sync-tag all
  memory_of 200 relay init "$work/relay" --mode clone
  memory_of 200 relay sync
  memory_of 200 relay status
  memory_of 200 relay fetch "$one" --to "$work/fetched"
  memory_of 200 backup init "$work/store"
  memory_of 300 backup run
  memory_of 300 backup verify
  memory_of 200 nightly
  memory_of 300 restore --all --from "$work/store" --to "$work/restored"
  memory_of 200 doctor
  memory_of 300 archive "${ids[@]:0:200}"
  memory_of 300 check --archives
  memory_of 300 search '销售表' --archived
  memory_of 300 unarchive "${ids[@]:0:200}"
  memory_of 200 rm "$one"
  memory_of 200 restore "$one" --from trash
  unset WBHOME
  done_with "$work"
}

# Runs a verb, which may have something to tell (4), and records its peak. Words that are no part of the verb are left out
# of the name of the row.
memory_of() { # AIM VERB…
  local aim=$1 name word
  shift
  name=$1
  for word in "${@:2}"; do
    [[ ! $word =~ ^(--(rebuild|consolidate|archives|archived|all|from)|run|sync|status|fetch|verify|init|trash)$ ]] || name+=" $word"
  done
  run bash -c '"$0" "$@" --no-progress --yes; (($? == 0 || $? == 4))' "$WBHOME_BIN" "$@"
  say "memory of $name on $FS: $(mib "$KIB") MiB, $MS ms"
  record job "memory-verb-${name// /-}" fs "$FS" title "memory of \`wbhome $name\`" peer '' kind MiB aim "$aim" \
    ours "$(mib "$KIB")" theirs '' our_runs "$MS" their_runs '' our_mib "$(mib "$KIB")" their_mib '' \
    input "$INPUT" command memory
}

memory_of_files() {
  need_input
  load_now
  mkdir "$PLACE/memory-files"
  ours "$PLACE/memory-files/ours" "$PLACE/memory-files/ours"
  same_size_of_memory memory-files "memory of migrate, many files" "$INPUT"
  done_with "$PLACE/memory-files"
}

# One log, each line of it with a reference: what comes out must be what sed would have made of it.
memory_of_log() {
  local work=$PLACE/memory-log source=$PLACE/memory-log/source log line lines
  # Source, copy, and some air.
  has_room "$PLACE" $((LOG_MIB * 1024 * 5 / 2)) 1000 || { say "memory-log: not measured on $FS"; return 0; }
  mkdir "$work"
  "$SCALE_HOME" "$source" --sessions 1 --old-path "$OLD" >&2
  log=$(find "$source/sessions" -name logs -type d | head -n 1)/big.log
  line="2025-02-10T01:00:00Z INFO tool=write path=\"$OLD/sessions/20250210_crawler/artifacts/table.csv\" took=12ms ok"
  lines=$((LOG_MIB * 1024 * 1024 / (${#line} + 1)))
  say "writing a log of $lines lines"
  # `yes` ends with a broken pipe.
  { yes "$line" || true; } | head -n "$lines" >"$log"
  sync -f "$work"
  load_now
  SRC=$source ours "$work/ours" "$work/ours"
  cmp <(sed "s#$OLD#$work/ours#g" "$log") "$work/ours/${log#"$source/"}" >&2 ||
    die "memory-log: the log is not what sed makes of it"
  say "check: the log is what sed makes of it"
  same_size_of_memory memory-log "memory of migrate, one log" \
    "one log of $LOG_MIB MiB, $lines lines, a reference in each"
  done_with "$work"
}

# Records what `ours` has just used.
same_size_of_memory() { # ROW TITLE INPUT
  say "$1 on $FS: $(mib "$KIB") MiB, $MS ms"
  record job "$1" fs "$FS" title "$2" peer '' kind MiB aim 200 \
    ours "$(mib "$KIB")" theirs '' our_runs "$MS" their_runs '' our_mib "$(mib "$KIB")" their_mib '' \
    input "$3" command memory
}

# Two homes a run, each committed for the first time, then with nothing changed. git leaves out by `info/exclude` what
# ours leaves out by itself; both must then have made the same tree. Its `gc --auto` is off: it runs detached, into
# the next measurement.
readonly GIT_COMMIT='cd "$1" && { git add -A && git commit -q -m x || git diff --quiet HEAD; } && sync -f .'
readonly OUR_COMMIT='cd "$1" && "$0" commit --home . --quiet --no-progress && sync -f .'
git_commit() { run bash -o pipefail -c "$GIT_COMMIT" peer "$1"; }
our_commit() { run bash -o pipefail -c "$OUR_COMMIT" "$WBHOME_BIN" "$1"; }
kib_of() { du -sk "$1" | cut -f 1; }

job_commit() {
  need_input
  local work=$PLACE/commit n aim=0.5 home
  local ours=() peers=() our_again=() peer_again=() kib=() peer_kib=() our_size peer_size
  [[ $FS = tmpfs ]] && aim=0.8
  mkdir "$work"
  load_now
  for ((n = 0; n <= RUNS; n++)); do
    for home in ours peer; do
      cp -a "$SRC" "$work/$home-$n"
      "$WBHOME_BIN" init "$work/$home-$n" --quiet
    done
    (
      cd "$work/peer-$n"
      printf '*.bin\n*.pickle\n' >>.git/info/exclude
      git config gc.auto 0 && git config user.name x && git config user.email x@example.org
    )
    # Both have an index of a home and settings, byte for byte.
    cp -a "$work/ours-$n/index.json" "$work/ours-$n/wbhome.toml" "$work/peer-$n/"
    sync -f "$work"
    our_commit "$work/ours-$n"
    ((n == 0)) || { ours+=("$MS") kib+=("$KIB"); }
    git_commit "$work/peer-$n"
    ((n == 0)) || { peers+=("$MS") peer_kib+=("$KIB"); }
    our_commit "$work/ours-$n"
    ((n == 0)) || our_again+=("$MS")
    git_commit "$work/peer-$n"
    ((n == 0)) || peer_again+=("$MS")
    if ((n == 0)); then same_commit "$work/ours-0" "$work/peer-0"; fi
    ((n == 0)) || say "commit $n/$RUNS on $FS: ours ${ours[-1]} ms, git ${peers[-1]} ms; again ${our_again[-1]} ms, ${peer_again[-1]} ms"
  done
  local peak=(our_mib "$(mib "$(largest "${kib[@]}")")" their_mib "$(mib "$(largest "${peer_kib[@]}")")" input "$INPUT" command commit)
  record job commit fs "$FS" title 'commit, first' peer '`git add -A && git commit`' kind ratio aim "$aim" \
    ours "$(median "${ours[@]}")" theirs "$(median "${peers[@]}")" our_runs "$(joined "${ours[@]}")" \
    their_runs "$(joined "${peers[@]}")" "${peak[@]}"
  record job commit-again fs "$FS" title 'commit, nothing changed' peer '`git add -A && git commit`' kind ratio aim 1.0 \
    ours "$(median "${our_again[@]}")" theirs "$(median "${peer_again[@]}")" our_runs "$(joined "${our_again[@]}")" \
    their_runs "$(joined "${peer_again[@]}")" "${peak[@]}"
  our_size=$(kib_of "$work/ours-0/.git") peer_size=$(kib_of "$work/peer-0/.git")
  record job commit-size fs "$FS" title 'disk space of `.git` after the first commit' peer '`git add -A && git commit`' \
    kind space aim 0.6 ours "$(mib "$our_size")" theirs "$(mib "$peer_size")" our_runs '1 run' their_runs '1 run' "${peak[@]}"
  "$WBHOME_BIN" commit --home "$work/ours-0" --quiet --consolidate
  git -C "$work/peer-0" gc -q
  same_commit "$work/ours-0" "$work/peer-0"
  our_size=$(kib_of "$work/ours-0/.git") peer_size=$(kib_of "$work/peer-0/.git")
  record job commit-packed fs "$FS" title 'disk space of `.git` after `commit --consolidate`' peer '`git gc`' \
    kind space aim 1.1 ours "$(mib "$our_size")" theirs "$(mib "$peer_size")" our_runs '1 run' their_runs '1 run' "${peak[@]}"
  done_with "$work"
}

same_commit() { # OURS PEER
  local one other
  one=$(git -C "$1" rev-parse 'HEAD^{tree}') other=$(git -C "$2" rev-parse 'HEAD^{tree}')
  [[ $one = "$other" ]] || die "commit: the two sides have not committed the same: $1 $2"
  [[ -z $(git -C "$1" status --porcelain) ]] || die "commit: git status is not clean in $1"
  git -C "$1" fsck --strict --no-progress >&2 || die "commit: git fsck finds errors in $1"
  say "check: the same tree $one on both sides, git status clean"
}

# What a peer does for each session; $1 is the home, $2 the folder for the packs, the rest are ids.
readonly TAR_ZSTD='home=$1 to=$2; shift 2; for id in "$@"; do
  tar --sort=name -C "$home/sessions" -c "$id" | zstd -q -T0 -3 --long=27 -o "$to/$id.tar.zst" && zstd -tq "$to/$id.tar.zst" || exit
done; sync -f "$to"'
readonly ZSTD_TAR='packs=$1 to=$2; shift 2; for id in "$@"; do
  zstd -dcq "$packs/$id.tar.zst" | tar -x -C "$to" || exit
done; sync -f "$to"'
readonly OURS_HERE='home=$1 verb=$2; shift 2; "$0" "$verb" --home "$home" --quiet --no-progress "$@" && sync -f "$home"'

# The same sessions packed and unpacked by both. Both keep the folder while the clock runs; ours puts it away after that,
# or there would be nothing to bring back.
race_packs() { # JOB TITLE INPUT ID…
  local job=$1 title=$2 input=$3 n
  shift 3
  local work=$PLACE/$job pack=() peer_pack=() unpack=() peer_unpack=() kib=() peer_kib=() kib2=() peer_kib2=()
  mkdir "$work"
  load_now
  for ((n = 0; n <= ${times:-RUNS}; n++)); do
    local home=$work/ours-$n peer=$work/peer-$n
    mkdir -p "$home/sessions" "$peer/sessions" "$peer/archive" "$peer/again"
    for id in "$@"; do cp -a "$SRC/sessions/$id" "$home/sessions/" && cp -a "$SRC/sessions/$id" "$peer/sessions/"; done
    "$WBHOME_BIN" init "$home" --quiet
    sync -f "$work"
    run bash -o pipefail -c "$OURS_HERE" "$WBHOME_BIN" "$home" archive --keep "$@"
    ((n == 0)) || { pack+=("$MS") kib+=("$KIB"); }
    run bash -o pipefail -c "$TAR_ZSTD" peer "$peer" "$peer/archive" "$@"
    ((n == 0)) || { peer_pack+=("$MS") peer_kib+=("$KIB"); }
    if ((n == 0)); then
      our_size=$(cat "$home"/archive/*.tar.zst | wc -c) peer_size=$(cat "$peer"/archive/*.tar.zst | wc -c)
    fi
    "$WBHOME_BIN" archive --home "$home" --quiet --no-progress "$@"
    sync -f "$work"
    run bash -o pipefail -c "$OURS_HERE" "$WBHOME_BIN" "$home" unarchive "$@"
    ((n == 0)) || { unpack+=("$MS") kib2+=("$KIB"); }
    run bash -o pipefail -c "$ZSTD_TAR" peer "$peer/archive" "$peer/again" "$@"
    ((n == 0)) || { peer_unpack+=("$MS") peer_kib2+=("$KIB"); }
    if ((n == 0)); then
      for id in "$@"; do
        diff -r --no-dereference "$SRC/sessions/$id" "$home/sessions/$id" >&2 &&
          diff -r --no-dereference "$SRC/sessions/$id" "$peer/again/$id" >&2 || die "$job: $id did not come back"
      done
      say "check: both sides gave $# sessions back as they were"
    else
      say "$job $n/${times:-$RUNS} on $FS: ours ${pack[-1]} ms, peer ${peer_pack[-1]} ms; back ${unpack[-1]} ms, ${peer_unpack[-1]} ms"
    fi
  done
  local runs=(our_runs "$(joined "${pack[@]}")" their_runs "$(joined "${peer_pack[@]}")")
  record job "$job" fs "$FS" title "archive + verify, $title" peer '`tar --sort=name \| zstd -T0 -3 --long=27`, `zstd -t`' \
    kind ratio aim 1.0 ours "$(median "${pack[@]}")" theirs "$(median "${peer_pack[@]}")" "${runs[@]}" \
    our_mib "$(mib "$(largest "${kib[@]}")")" their_mib "$(mib "$(largest "${peer_kib[@]}")")" input "$input" command "$command"
  record job "$job-size" fs "$FS" title "size of the packs, $title" peer 'the same' kind space aim "$aim_of_size" \
    ours "$(mib_of "$our_size")" theirs "$(mib_of "$peer_size")" our_runs '1 run' their_runs '1 run' \
    our_mib '' their_mib '' input "$input" command "$command"
  record job "$job-back" fs "$FS" title "unarchive + verify, $title" peer '`zstd -dc \| tar -x`' \
    kind ratio aim 1.0 ours "$(median "${unpack[@]}")" theirs "$(median "${peer_unpack[@]}")" \
    our_runs "$(joined "${unpack[@]}")" their_runs "$(joined "${peer_unpack[@]}")" \
    our_mib "$(mib "$(largest "${kib2[@]}")")" their_mib "$(mib "$(largest "${peer_kib2[@]}")")" input "$input" command "$command"
}
mib_of() { awk -v bytes="$1" 'BEGIN { printf "%.4f", bytes / 1048576 }'; }

job_archive() {
  need_input
  local largest snapshots command=archive aim_of_size=1.02
  snapshots=$(find "$SRC/sessions" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' | sort | awk 'NR == 1')
  mapfile -t largest < <(du -s --apparent-size "$SRC"/sessions/* | sort -k 1,1nr -k 2 | cut -f 2 | xargs -n 1 basename |
    grep -vxF "$snapshots" | awk 'NR <= 20')
  race_packs archive 'the 20 largest sessions' "the 20 largest of: $INPUT" "${largest[@]}"
  race_packs archive-snapshots 'a snapshot a turn' "one session with a whole-context snapshot a turn, $(session_size "$snapshots")" "$snapshots"
  done_with "$PLACE/archive"
  done_with "$PLACE/archive-snapshots"
}

session_size() { # ID
  find "$SRC/sessions/$1" -type f -printf '%s\n' | awk '{ sum += $1 } END { printf "%d files, %.0f MB", NR, sum / 1e6 }'
}

# One session of about 1 GB, and single files out of it.
job_archive_large() {
  local work=$PLACE/large home=$PLACE/large/home id at n file files input command=archive-large aim_of_size=1.1
  has_room "$PLACE" $((5 << 20)) 20000 || { say "archive-large: not measured on $FS"; return 0; }
  local source=$SRC
  SRC=$work/source
  mkdir "$work"
  "$SCALE_HOME" "$SRC" --sessions 1 --turns 900 --snapshots --old-path "$OLD" >&2
  id=$(basename "$SRC"/sessions/*)
  input="one session with a whole-context snapshot a turn, $(session_size "$id")"
  local times=3
  race_packs archive-large '1 GB' "$input" "$id"
  for n in archive-large archive-large-back; do
    KIB=$(awk -F '\t' -v job="$n" -v fs="$FS" '$1 == job && $2 == fs { printf "%d", $11 * 1024 }' "$TSV")
    record job "$n-memory" fs "$FS" title "memory of ${n/#archive-large/archive}, 1 GB" peer '' kind MiB aim 300 \
      ours "$(mib "$KIB")" theirs '' our_runs 0 their_runs '' our_mib "$(mib "$KIB")" their_mib '' input "$input" command archive-large
  done
  mkdir -p "$home/sessions"
  cp -a "$SRC/sessions/$id" "$home/sessions/"
  "$WBHOME_BIN" init "$home" --quiet
  "$WBHOME_BIN" archive --home "$home" --quiet "$id"
  load_now
  local ours=() peers=() our_kib=() peer_kib=()
  # Spread over the whole: each lies in another frame.
  mapfile -t files < <(cd "$SRC/sessions/$id" && find context -name 'turn_*.json' | sort | awk 'NR % 179 == 90')
  for file in "${files[@]}" "${files[@]}"; do
    run bash -c '"$0" show --home "$1" "$2/$3" >"$4"' "$WBHOME_BIN" "$home" "$id" "$file" "$work/one"
    ours+=("$MS") our_kib+=("$KIB")
    run bash -c 'tar --zstd -xOf "$1/archive/$2.tar.zst" "$2/$3" >"$4"' peer "$home" "$id" "$file" "$work/other"
    peers+=("$MS") peer_kib+=("$KIB")
    cmp "$work/one" "$work/other" && cmp "$work/one" "$SRC/sessions/$id/$file" || die "$file is not what it was"
  done
  record job archive-one fs "$FS" title 'one file out of a 1 GB archive' peer '`tar --zstd -xO`' kind ratio aim 0.15 \
    ours "$(median "${ours[@]}")" theirs "$(median "${peers[@]}")" our_runs "$(joined "${ours[@]}")" \
    their_runs "$(joined "${peers[@]}")" our_mib "$(mib "$(largest "${our_kib[@]}")")" \
    their_mib "$(mib "$(largest "${peer_kib[@]}")")" input "$input, ${#files[@]} of its turns" command archive-large
  SRC=$source
  done_with "$work"
}

# One home, backed up by three: for the first time into a new store a run, then with nothing changed, then with one session
# changed (a turn more, and a line more in its log). All three take the same folders. restic encrypts, and can not be told
# not to; borg does not (`-e none`), and both compress as they do by default. Their caches lie on the same disk.
readonly OUR_BACKUP='cd "$1" && "$0" backup run --home . --store "$2" --quiet --no-progress && sync -f "$2"'
readonly RESTIC_BACKUP='cd "$1" && restic --quiet --repo "$2" --cache-dir "$3" backup --exclude "/**/.git" --exclude "/**/.wbhome" . && sync -f "$2"'
readonly BORG_BACKUP='cd "$1" && borg create --exclude "pp:.git" --exclude "pp:.wbhome" "$2::{now:%H%M%S.%f}" . && sync -f "$2"'
our_backup() { run bash -o pipefail -c "$OUR_BACKUP" "$WBHOME_BIN" "$@"; }
restic_backup() { run bash -o pipefail -c "$RESTIC_BACKUP" peer "$@"; }
borg_backup() { run bash -o pipefail -c "$BORG_BACKUP" peer "$@"; }

need_backup_tools() {
  local tool
  for tool in "$@"; do command -v "$tool" >/dev/null || die "$tool is needed"; done
  export RESTIC_PASSWORD=race BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes BORG_RELOCATED_REPO_ACCESS_IS_OK=yes
}

# The same home into a new store a run: out of a cold cache, out of memory; then into the second again.
job_backup() {
  need_backup_tools restic borg
  need_input
  local work=$PLACE/backup home=$PLACE/backup/home n phase kind store session log cold input="$INPUT"
  local -A took=() peaks=()
  mkdir "$work"
  cp -a "$SRC" "$home"
  "$WBHOME_BIN" init "$home" --quiet
  export BORG_BASE_DIR=$work/borg
  # Neither the largest nor the smallest.
  session=$(du -s --apparent-size "$home"/sessions/* | sort -k 1,1n -k 2 | awk '{ at[NR] = $2 } END { print at[int(NR / 2) + 1] }')
  load_now
  local phases=(first again one)
  if can_forget; then phases=(cold "${phases[@]}"); else say 'backup, out of a cold cache: not measured (only root can empty it, and not that of tmpfs)'; fi
  for ((n = 0; n <= RUNS; n++)); do
    for phase in "${phases[@]}"; do
      case $phase in
        cold | first)
          store=$phase-$n
          "$WBHOME_BIN" backup init --home "$home" "$work/ours-$store" --quiet 2>/dev/null
          restic --quiet --repo "$work/restic-$store" --cache-dir "$work/cache-$store" init
          borg init -e none "$work/borg-$store"
          ;;
        one)
          printf '{"turn": 9%03d, "role": "user", "content": "one more"}\n' "$n" >"$session/context/turn_9$(printf %03d "$n").json"
          log=$(find "$session/logs" -type f | sort | head -n 1)
          printf 'one more line %d\n' "$n" >>"$log"
          ;;
      esac
      for kind in ours restic borg; do
        sync -f "$work"
        # borg has the system forget what it read: whoever came next would wait for the disk, and the others not.
        if [[ $phase = cold ]]; then forget; else remember "$home"; fi
        # The programs themselves are in memory for each.
        "$WBHOME_BIN" --version >/dev/null; restic version >/dev/null; borg --version >/dev/null
        case $kind in
          ours) our_backup "$home" "$work/ours-$store" ;;
          restic) restic_backup "$home" "$work/restic-$store" "$work/cache-$store" ;;
          borg) borg_backup "$home" "$work/borg-$store" ;;
        esac
        ((n == 0)) || { took[$phase-$kind]+=" $MS" peaks[$phase-$kind]+=" $KIB"; }
      done
    done
    if ((n == 0)); then
      same_backups "$home" "$work" "$(basename "$session")"
    else
      cold=${took[cold-ours]:+"cold ours ${took[cold-ours]##* } ms, restic ${took[cold-restic]##* } ms, borg ${took[cold-borg]##* } ms; "}
      say "backup $n/$RUNS on $FS: ${cold}first ours ${took[first-ours]##* } ms, restic ${took[first-restic]##* } ms, borg ${took[first-borg]##* } ms;" \
        "again ${took[again-ours]##* }, ${took[again-restic]##* }, ${took[again-borg]##* };" \
        "one ${took[one-ours]##* }, ${took[one-restic]##* }, ${took[one-borg]##* }"
    fi
  done
  record_backup first '' 'backup, first'
  if can_forget; then record_backup cold -cold 'backup, first, out of a cold cache'; fi
  record_backup again -again 'backup, nothing changed'
  record_backup one -one 'backup, one session changed'
  # shellcheck disable=SC2086
  record job backup-memory fs "$FS" title 'memory of backup, many files' peer '' kind MiB aim 200 \
    ours "$(mib "$(largest ${peaks[first-ours]})")" theirs '' our_runs "$(median ${took[first-ours]})" their_runs '' \
    our_mib "$(mib "$(largest ${peaks[first-ours]})")" their_mib '' input "$input" command backup
  done_with "$work"
}

# Has the system hold nothing of any disk in memory.
can_forget() { [[ $FS != tmpfs ]] && { : >/proc/sys/vm/drop_caches; } 2>/dev/null; }
forget() { echo 3 >/proc/sys/vm/drop_caches; }
# Has it hold all contents of a folder there.
remember() { find "$1" -type f -print0 | xargs -0 cat >/dev/null; }

# shellcheck disable=SC2086
record_backup() { # PHASE ROW TITLE, within job_backup
  local peer name row
  for peer in restic borg; do
    case $peer in
      restic) name='`restic backup` (encrypts)' row=backup$2 ;;
      borg) name='`borg create`, `-e none`' row=backup$2-borg ;;
    esac
    record job "$row" fs "$FS" title "$3" peer "$name" kind ratio aim 0.5 \
      ours "$(median ${took[$1-ours]})" theirs "$(median ${took[$1-$peer]})" \
      our_runs "$(joined ${took[$1-ours]})" their_runs "$(joined ${took[$1-$peer]})" \
      our_mib "$(mib "$(largest ${peaks[$1-ours]})")" their_mib "$(mib "$(largest ${peaks[$1-$peer]})")" \
      input "$input" command backup
  done
}

# Everything that is in the sessions comes out of all three as it is now; ours by stock tools, and by its own look at it.
same_backups() { # HOME WORK CHANGED
  local id pack out=$2/out
  "$WBHOME_BIN" backup verify --home "$1" --store "$2/ours-first-0" --quiet || die "backup: our packs are not sound"
  mkdir "$out" "$out/ours" "$out/borg"
  for id in "$1"/sessions/*/; do
    id=$(basename "$id")
    pack=$(printf '%s\n' "$2/ours-first-0/packs/sessions/$id"/*.tar.zst | sort | tail -n 1)
    tar --zstd -xf "$pack" -C "$out/ours"
  done
  [[ $(find "$2/ours-first-0/packs/sessions" -name '*.tar.zst' -printf '%h\n' | sort | uniq -d) = "$2/ours-first-0/packs/sessions/$3" ]] ||
    die "backup: not one session alone was packed again"
  restic --quiet --repo "$2/restic-first-0" --cache-dir "$2/cache-first-0" restore latest --target "$out/restic"
  (cd "$out/borg" && borg extract "$2/borg-first-0::$(borg list --short --last 1 "$2/borg-first-0")")
  for id in "$out/ours" "$out/restic/sessions" "$out/borg/sessions"; do
    diff -r --no-dereference "$1/sessions" "$id" >&2 || die "backup: $id is not what was backed up"
  done
  say "check: the same sessions come out of all three"
}

# A whole home out of a store, and out of a repository of restic that holds the same. Ours verifies each file; so does
# `--verify`.
readonly OUR_RESTORE='"$0" restore --all --from "$1" --to "$2" --quiet --no-progress && sync -f "$2"'
readonly RESTIC_RESTORE='restic --quiet --repo "$1" --cache-dir "$3" restore latest --target "$2" --verify && sync -f "$2"'

job_restore() {
  need_backup_tools restic
  need_input
  local work=$PLACE/restore home=$PLACE/restore/home n
  local ours=() peers=() kib=() peer_kib=()
  mkdir "$work"
  cp -a "$SRC" "$home"
  "$WBHOME_BIN" init "$home" --quiet
  "$WBHOME_BIN" backup init --home "$home" "$work/store" --quiet 2>/dev/null
  our_backup "$home" "$work/store"
  restic --quiet --repo "$work/restic" --cache-dir "$work/cache" init
  restic_backup "$home" "$work/restic" "$work/cache"
  load_now
  for ((n = 0; n <= RUNS; n++)); do
    sync -f "$work"
    run bash -o pipefail -c "$OUR_RESTORE" "$WBHOME_BIN" "$work/store" "$work/ours-$n"
    ((n == 0)) || { ours+=("$MS") kib+=("$KIB"); }
    sync -f "$work"
    run bash -o pipefail -c "$RESTIC_RESTORE" peer "$work/restic" "$work/peer-$n" "$work/cache"
    ((n == 0)) || { peers+=("$MS") peer_kib+=("$KIB"); }
    if ((n == 0)); then
      same_homes "$home" "$work/ours-0" "$work/peer-0"
    else
      say "restore $n/$RUNS on $FS: ours ${ours[-1]} ms, restic ${peers[-1]} ms"
    fi
  done
  record job restore fs "$FS" title 'restore --all + verify' peer '`restic restore --verify`' kind ratio aim 0.6 \
    ours "$(median "${ours[@]}")" theirs "$(median "${peers[@]}")" our_runs "$(joined "${ours[@]}")" \
    their_runs "$(joined "${peers[@]}")" our_mib "$(mib "$(largest "${kib[@]}")")" \
    their_mib "$(mib "$(largest "${peer_kib[@]}")")" input "$INPUT" command restore
  record job restore-memory fs "$FS" title 'memory of restore, many files' peer '' kind MiB aim 200 \
    ours "$(mib "$(largest "${kib[@]}")")" theirs '' our_runs "$(median "${ours[@]}")" their_runs '' \
    our_mib "$(mib "$(largest "${kib[@]}")")" their_mib '' input "$INPUT" command restore
  done_with "$work"
}

# Contents, kinds, modes and times of the sessions.
same_homes() { # HOME OURS PEER
  local one of=$PLACE/entries
  (cd "$1/sessions" && find . -mindepth 1 -printf '%P %y %m %T@\n' | sort) >"$of"
  for one in "$2" "$3"; do
    diff -r --no-dereference "$1/sessions" "$one/sessions" >&2 || die "restore: $one does not hold what was backed up"
    (cd "$one/sessions" && find . -mindepth 1 -printf '%P %y %m %T@\n' | sort) | diff "$of" - >&2 ||
      die "restore: modes or times in $one are not what they were"
  done
  "$WBHOME_BIN" ls --home "$2" --quiet >/dev/null || die "restore: $2 is no home"
  say "check: the same $(wc -l <"$of") entries on both sides"
}

# One log of 1 GB, cut by ours and by logrotate in turn: at rest, and while somebody appends 100,000 lines a second. Neither
# compresses what it cuts out. The writer says how long its longest write took; its lines are numbered, so that what is lost
# can be counted.
readonly OUR_ROTATE='"$0" rotate --home "$1" --force --quiet --no-progress'
readonly LOGROTATE='logrotate --force --state "$1/state" "$1/conf"'
our_rotate() { run bash -c "$OUR_ROTATE" "$WBHOME_BIN" "$1"; }
logrotate_it() { run bash -c "$LOGROTATE" peer "$1"; }

# LOG FIRST A_SECOND: appends lines until LOG.stop is there; prints how many lines there are, and the longest write in ms.
readonly WRITER='
use strict; use warnings; use Time::HiRes qw(time sleep); use IO::Handle; use Fcntl;
my ($log, $n, $rate) = @ARGV; my ($first, $begun, $longest) = ($n, time, 0);
sysopen(my $out, $log, O_WRONLY | O_APPEND | O_CREAT) or die "$log: $!";
until (-e "$log.stop") {
  my $goal = $first + int((time() - $begun) * $rate);
  while ($n < $goal) {
    my $text = "";
    for (0 .. $n % 4) { my $l = $n % 50 ? 20 + $n * 7919 % 100 : 20 + $n * 7919 % 4981; $text .= sprintf("%012d ", $n) . "x" x ($l - 14) . "\n"; $n++ }
    my $then = time; syswrite($out, $text) == length $text or die $!; my $took = time() - $then;
    $longest = $took if $took > $longest;
  }
  sleep 0.0005;
}
printf "%d %.1f\n", $n, $longest * 1000;'

# FILES in the order of their lines: how many of LINES are not there once and whole.
readonly MISSED='
use strict; use warnings;
my ($lines, $next, $missed) = (shift, 0, 0);
for my $file (@ARGV) {
  open my $in, "<:raw", $file or die "$file: $!";
  while (my $line = <$in>) {
    next if $line =~ /^\s*$/;
    my $n = $line =~ /^(\d{12}) x*\n\z/ ? $1 + 0 : -1;
    my $l = $n % 50 ? 20 + $n * 7919 % 100 : 20 + $n * 7919 % 4981;
    if ($n < $next || length $line != $l) { $missed++; next }
    $missed += $n - $next; $next = $n + 1;
  }
}
print $missed + $lines - $next, "\n";'

# A home in `$1` whose log is to be cut, and what logrotate needs for it; the log is LOG then.
LOG=''
a_log() { # FOLDER
  LOG=$1/sessions/20240603_crawler/logs/run.log
  mkdir -p "$(dirname "$LOG")"
  "$WBHOME_BIN" init "$1" --quiet
  printf '[rotate]\ncompress = "none"\nkeep = 1000\n' >"$1/wbhome.toml"
  printf '%s {\ncopytruncate\nrotate 1000\nnocompress\n}\n' "$LOG" >"$1/conf"
  chmod 644 "$1/conf"
}

fill_log() { # BYTES
  { yes '2025-02-10T01:00:00Z INFO tool=write path=/home/me/workbuddy_home/sessions/x/artifacts/table.csv took=12ms ok' || true; } |
    head -c "$1" >"$LOG"
  sync -f "$LOG"
}

WRITTEN=0 LONGEST=0 WRITER_PID=''
start_writer() { # FIRST
  rm -f "$LOG.stop"
  perl -e "$WRITER" "$LOG" "$1" 100000 >"$PLACE/written" &
  WRITER_PID=$!
  sleep 1
}
stop_writer() {
  touch "$LOG.stop"
  wait "$WRITER_PID"
  read -r WRITTEN LONGEST <"$PLACE/written"
}

job_rotate() {
  can_rotate || return 0
  local gb=$((1 << 30)) work=$PLACE/rotate side n written
  load_now
  local -A ms=() kib=() longest=([ours]=0 [peer]=0)
  for written in '' yes; do
    ms=() kib=()
    for ((n = 0; n <= RUNS; n++)); do
      for side in our_rotate logrotate_it; do
        a_log "$work"
        fill_log "$gb"
        [[ -z $written ]] || start_writer 0
        "$side" "$work"
        [[ -z $written ]] || stop_writer
        # The first warms up.
        if ((n)); then
          ms[$side]+=" $MS" kib[$side]+=" $KIB"
          if [[ -n $written ]]; then longest[$side]+=" $LONGEST"; fi
        fi
        say "rotate ${written:+written }$n/$RUNS on $FS: $side $MS ms${written:+, longest write $LONGEST ms}"
        rm -rf "$work"
      done
    done
    # shellcheck disable=SC2086
    record job "rotate${written:+-written}" fs "$FS" title "rotate 1 GB${written:+ under a writer}" peer '`logrotate` copytruncate' \
      kind ratio aim 1.0 ours "$(median ${ms[our_rotate]})" theirs "$(median ${ms[logrotate_it]})" \
      our_runs "$(joined ${ms[our_rotate]})" their_runs "$(joined ${ms[logrotate_it]})" \
      our_mib "$(mib "$(largest ${kib[our_rotate]})")" their_mib "$(mib "$(largest ${kib[logrotate_it]})")" \
      input "a log of 1 GiB${written:+, 100,000 lines a second appended}" command rotate
  done
  # shellcheck disable=SC2086
  record job rotate-blocked fs "$FS" title 'rotate 1 GB: the longest write' peer '`logrotate` copytruncate' kind ms aim 20 \
    ours "$(largest ${longest[our_rotate]})" theirs "$(largest ${longest[logrotate_it]})" our_runs "$(joined ${longest[our_rotate]})" \
    their_runs "$(joined ${longest[logrotate_it]})" our_mib '' their_mib '' input 'as above' command rotate
}

can_rotate() {
  command -v logrotate >/dev/null || { say 'rotate: needs logrotate, not measured'; return 1; }
  [[ $FS = ext4 || $FS = xfs ]] || { say "rotate: nothing is lossless on $FS, not measured"; return 1; }
  has_room "$PLACE" $((22 << 20)) 1000
}

job_rotate_lost() {
  can_rotate || return 0
  local work=$PLACE/rotate side n
  local -A lost=()
  load_now
  for side in our_rotate logrotate_it; do
    a_log "$work"
    start_writer 0
    for ((n = 0; n < 60; n++)); do
      "$side" "$work"
      sleep 0.05
    done
    stop_writer
    local files
    mapfile -t files < <(printf '%s\n' "$LOG"-* | sort -V)
    [[ $side = our_rotate ]] || mapfile -t files < <(printf '%s\n' "$LOG".[0-9]* | sort -Vr)
    lost[$side]=$(perl -e "$MISSED" "$WRITTEN" "${files[@]}" "$LOG")
    say "rotate 60 times on $FS: $side missed ${lost[$side]} of $WRITTEN lines"
    lost[$side-of]=$WRITTEN
    rm -rf "$work"
  done
  record job rotate-lost fs "$FS" title 'rotate 60 times under a writer: lines lost' peer '`logrotate` copytruncate' kind lines aim 0 \
    ours "${lost[our_rotate]}" theirs "${lost[logrotate_it]}" our_runs 'of '"${lost[our_rotate-of]}" \
    their_runs 'of '"${lost[logrotate_it-of]}" our_mib '' their_mib '' input '100,000 lines a second of 20 to 5,000 bytes' \
    command rotate-lost
}

job_rotate_large() {
  can_rotate || return 0
  local work=$PLACE/rotate side
  local -A blocked=()
  load_now
  for side in our_rotate logrotate_it; do
    a_log "$work"
    fill_log $((4700 * 1000000))
    start_writer 0
    "$side" "$work"
    stop_writer
    blocked[$side]=$LONGEST
    say "rotate 4.7 GB on $FS: $side $MS ms, longest write $LONGEST ms"
    rm -rf "$work"
  done
  record job rotate-blocked-large fs "$FS" title 'rotate 4.7 GB: the longest write' peer '`logrotate` copytruncate' kind ms aim 20 \
    ours "${blocked[our_rotate]}" theirs "${blocked[logrotate_it]}" our_runs "${blocked[our_rotate]}" \
    their_runs "${blocked[logrotate_it]}" our_mib '' their_mib '' input 'a log of 4.7 GB, 100,000 lines a second appended' \
    command rotate-large
}

# The sessions of a home, searched for what stands in a few files, for what stands in many, and for Chinese, which a third of
# the files have escaped: there ours finds more. rg reads hidden files and those that git ignores too (-uu).
readonly OUR_SEARCH='"$0" search --home "$1" --no-pager "${@:3}" "$2" >"$1/../found"; (($? < 2))'
readonly RG='cd "$1/sessions" && rg --no-config -uu --no-heading --line-number "$2" >"$1/../found"; (($? < 2))'
readonly ZSTDGREP='cd "$1/archive" && for pack in *.tar.zst; do zstdgrep -aE "$2" "$pack"; done >"$1/../found"; true'
our_search() { run bash -c "$OUR_SEARCH" "$WBHOME_BIN" "$@"; }
rg_search() { run bash -c "$RG" peer "$@"; }
zstdgrep_search() { run bash -c "$ZSTDGREP" peer "$@"; }
readonly RARE='needle-[0-9]+' OFTEN='waiting 8 s' CHINESE='销售表'

# A home with a needle in 20 of its files.
search_home() { # HOME
  local turn n=0
  cp -a "$SRC" "$1"
  "$WBHOME_BIN" init "$1" --quiet
  find "$1/sessions" -name 'turn_003.json' | sort | awk 'NR % 20 == 7' | head -n 20 | while read -r turn; do
    n=$((n + 1))
    printf '{"role": "user", "content": "the needle-%d of \u6570\u636e"}\n' "$n" >"$turn"
  done
}

race_search() { # ROW TITLE AIM PATTERN PEER-FUNCTION PEER-NAME COMMAND HOME FLAG…
  local row=$1 title=$2 aim=$3 pattern=$4 peer=$5 peer_name=$6 command=$7 home=$8 n
  shift 8
  local ours=() peers=() kib=() peer_kib=()
  load_now
  for ((n = 0; n <= RUNS; n++)); do
    our_search "$home" "$pattern" "$@"
    ((n == 0)) || { ours+=("$MS") kib+=("$KIB"); }
    ((n > 0)) || say "$row: ours found $(wc -l <"$home/../found") lines"
    "$peer" "$home" "$pattern"
    ((n == 0)) || { peers+=("$MS") peer_kib+=("$KIB"); }
    ((n > 0)) || say "$row: the peer found $(wc -l <"$home/../found") lines"
    ((n == 0)) || say "$row $n/$RUNS on $FS: ours ${ours[-1]} ms, peer ${peers[-1]} ms"
  done
  record job "$row" fs "$FS" title "$title" peer "$peer_name" kind ratio aim "$aim" \
    ours "$(median "${ours[@]}")" theirs "$(median "${peers[@]}")" our_runs "$(joined "${ours[@]}")" \
    their_runs "$(joined "${peers[@]}")" our_mib "$(mib "$(largest "${kib[@]}")")" \
    their_mib "$(mib "$(largest "${peer_kib[@]}")")" input "$INPUT" command "$command"
}

job_search() {
  command -v rg >/dev/null || die 'rg is needed'
  need_input
  local work=$PLACE/search home=$PLACE/search/home
  mkdir "$work"
  search_home "$home"
  diff <("$WBHOME_BIN" search --home "$home" -l "$RARE" | sort) <(cd "$home/sessions" && rg --no-config -uu -l "$RARE" | sort) >&2 ||
    die 'search: the two sides did not find the same files'
  say "check: the same $(cd "$home/sessions" && rg --no-config -uu -l "$RARE" | wc -l) files on both sides"
  race_search search 'search, found in 20 files' 1.2 "$RARE" rg_search '`rg -uu`' search "$home"
  race_search search-often 'search, found often' 1.2 "$OFTEN" rg_search '`rg -uu`' search "$home"
  race_search search-chinese 'search, Chinese, escaped or not' 1.2 "$CHINESE" rg_search '`rg -uu` (escaped ones not)' search "$home"
  done_with "$work"
}

job_search_archived() {
  need_input
  local work=$PLACE/search-archived home=$PLACE/search-archived/home ids
  mkdir "$work"
  search_home "$home"
  mapfile -t ids < <(cd "$home/sessions" && printf '%s\n' *)
  "$WBHOME_BIN" index --home "$home" --quiet
  "$WBHOME_BIN" archive --home "$home" --quiet --no-progress "${ids[@]}"
  [[ $("$WBHOME_BIN" search --home "$home" --archived -l "$RARE" | wc -l) = 20 ]] || die 'search-archived: not 20 files found'
  race_search search-archived 'search in archives, found in 20 files' 0.5 "$RARE" zstdgrep_search '`zstdgrep` for each' \
    search-archived "$home" --archived
  race_search search-archived-often 'search in archives, found often' 0.5 "$OFTEN" zstdgrep_search '`zstdgrep` for each' \
    search-archived "$home" --archived
  done_with "$work"
}

# ── relay ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# A sync into a new relay, and into one that is as it should be; the look for secrets is what `-n` takes longer than
# `relay status`, which compares the same and looks for none.
readonly RELAY='rm -f "$1/.wbhome/relay.json" && "$0" relay init --home "$1" "$2" --mode "$3" --quiet'
readonly RELAY_SYNC='"$0" relay sync --home "$1" --quiet --no-progress && sync -f "$2"'
readonly RELAY_LOOK='"$0" relay sync --home "$1" --dry-run --quiet --no-progress'
readonly RELAY_STATUS='"$0" relay status --home "$1"'
readonly CP_AL='cp -al "$1" "$2" && sync -f "$2"'

# A home of 200 sessions with 10,000 files that travel.
relay_home() { # HOME
  "$SCALE_HOME" "$1" --sessions 200 --turns 38 --old-path "$OLD" >&2
  rm -rf "$1"/sessions/*/logs
  "$WBHOME_BIN" init "$1" --quiet
  "$WBHOME_BIN" index --home "$1" --quiet
  (cd "$1/sessions" && "$WBHOME_BIN" label --home "$1" --quiet --sync-tag race -- *)
}

# The same files, with the same bytes.
same_relay() { # HOME RELAY PEER
  diff -r --no-dereference --exclude=.leases "$2" "$3" >&2 && diff -rq --no-dereference "$1/sessions" "$3" >&2 &&
    say "check: the same $(find "$3" -type f | wc -l) files on both sides"
}

race_relay() { # MODE AIM CP PEER-NAME HOME
  local mode=$1 aim=$2 cp=$3 peer_name=$4 home=$5 work=$PLACE/relay-$1 n
  local first=() again=() secrets=() ours=() peers=() kib=() again_kib=() peer_kib=() look status
  mkdir "$work"
  load_now
  for ((n = 0; n <= RUNS; n++)); do
    run bash -c "$RELAY" "$WBHOME_BIN" "$home" "$work/relay-$n" "$mode"
    run bash -c "$RELAY_LOOK" "$WBHOME_BIN" "$home"
    look=$MS
    run bash -c "$RELAY_STATUS" "$WBHOME_BIN" "$home"
    status=$MS
    sync -f "$work"
    run bash -c "$RELAY_SYNC" "$WBHOME_BIN" "$home" "$work"
    ((n == 0)) || { first+=("$MS") kib+=("$KIB") secrets+=("$(awk -v a="$look" -v b="$status" 'BEGIN { printf "%.1f", a - b }')"); }
    ((n == 0)) || ours+=("$(awk -v a="$MS" -v b="${secrets[-1]}" 'BEGIN { printf "%.1f", a - b }')")
    run bash -c "$RELAY_SYNC" "$WBHOME_BIN" "$home" "$work"
    ((n == 0)) || { again+=("$MS") again_kib+=("$KIB"); }
    sync -f "$work"
    run bash -c "$cp" peer "$home/sessions" "$work/peer-$n"
    ((n == 0)) || { peers+=("$MS") peer_kib+=("$KIB"); }
    ((n > 0)) || same_relay "$home" "$work/relay-0" "$work/peer-0" || die "relay-$mode: the two sides did not do the same job"
    ((n == 0)) || say "relay-$mode $n/$RUNS on $FS: ours ${first[-1]} ms, ${secrets[-1]} of it for secrets, again ${again[-1]} ms; $peer_name ${peers[-1]} ms"
  done
  local input="200 sessions, $(find "$home/sessions" -type f | wc -l) files, secrets apart: $(median "${secrets[@]}") ms"
  record job "relay-$mode" fs "$FS" title "relay sync, first, $mode" peer "$peer_name" kind ratio aim "$aim" \
    ours "$(median "${ours[@]}")" theirs "$(median "${peers[@]}")" our_runs "$(joined "${ours[@]}")" \
    their_runs "$(joined "${peers[@]}")" our_mib "$(mib "$(largest "${kib[@]}")")" \
    their_mib "$(mib "$(largest "${peer_kib[@]}")")" input "$input" command relay
  record job "relay-$mode-again" fs "$FS" title "relay sync, nothing changed, $mode" peer 'its first' kind ratio aim 0.3 \
    ours "$(median "${again[@]}")" theirs "$(median "${first[@]}")" our_runs "$(joined "${again[@]}")" \
    their_runs "$(joined "${first[@]}")" our_mib "$(mib "$(largest "${again_kib[@]}")")" \
    their_mib "$(mib "$(largest "${kib[@]}")")" input "$input" command relay
  done_with "$work"
}

job_relay() {
  local home=$PLACE/relay-home me=$PLACE/relay-me
  mkdir "$me"
  relay_home "$home"
  # Which device this is stands in the data folder of the user: it shall be one of the race's own.
  XDG_DATA_HOME=$me race_relay clone 1.0 "$CP" '`cp -a`' "$home"
  XDG_DATA_HOME=$me race_relay hardlink 1.2 "$CP_AL" '`cp -al`' "$home"
}

# With what bash needs to start any program in it; that is what the peer shows.
here_start() {
  local n begin end our_ms=() peer_ms=()
  local times=$((RUNS < 5 ? 10 : 200))
  load_now
  for ((n = -5; n < times; n++)); do
    begin=$EPOCHREALTIME
    "$WBHOME_BIN" --version >/dev/null
    end=$EPOCHREALTIME
    ((n < 0)) || our_ms+=("$(ms_between "$begin" "$end")")
    begin=$EPOCHREALTIME
    /bin/true
    end=$EPOCHREALTIME
    ((n < 0)) || peer_ms+=("$(ms_between "$begin" "$end")")
  done
  record job start fs - title '`wbhome --version`' peer '`true`' kind ms aim 5 \
    ours "$(median "${our_ms[@]}")" theirs "$(median "${peer_ms[@]}")" our_runs "$times runs" their_runs "$times runs" \
    our_mib '' their_mib '' input '' command start
}

# A home whose index names 10,000 sessions.
ten_thousand() { # HOME
  "$WBHOME_BIN" init -q "$1"
  perl -e 'use POSIX; print "[\n"; for my $n (0 .. 9999) {
    my $day = strftime("%Y-%m-%d", gmtime(1577836800 + 86400 * int($n * 0.183))); my $id = ($day =~ tr/-//dr) . "_task_$n";
    printf "%s  {\n    \"id\": \"%s\",\n    \"status\": \"%s\",\n    \"title\": \"What was to be done for customer %d\",\n    \"agent\": \"research_agent\",\n    \"project\": \"project_%d\",\n    \"tags\": [\n      \"web\",\n      \"t%d\"\n    ],\n    \"sync_tag\": null,\n    \"created_at\": \"%sT09:00:00+08:00\",\n    \"archived_at\": null,\n    \"session_id\": \"8e0f5f1c-1d2e-4b8e-9a7b-%012d\",\n    \"archive\": null\n  }",
      $n ? ",\n" : "", $id, $n % 3 ? "active" : "archived", $n % 97, $n % 40, $n % 15, $day, $n; } print "\n]\n"' >"$1/index.json"
}

# All of 10,000 sessions, each with a turn, as they are listed into a pipe; and the file names alone, by `ls`.
here_ls() {
  local home n begin end our_ms=() peer_ms=() times=$((RUNS < 5 ? 5 : 50))
  home=$(mktemp -d "$BENCH_DIR/wbhome-race.XXXXXX")
  FOLDERS+=("$home")
  ten_thousand "$home"
  jq -r '.[].id' "$home/index.json" | (cd "$home/sessions" && xargs -I {} mkdir -p {}/context)
  for n in "$home"/sessions/*/; do printf '{"turn": 1, "role": "user", "content": "%s"}\n' "$n" >"$n/context/turn_001.json"; done
  "$WBHOME_BIN" index -q --home "$home"
  load_now
  for ((n = -3; n < times; n++)); do
    begin=$EPOCHREALTIME
    ls -l "$home/sessions" | wc -l >"$home/names"
    end=$EPOCHREALTIME
    ((n < 0)) || peer_ms+=("$(ms_between "$begin" "$end")")
    begin=$EPOCHREALTIME
    "$WBHOME_BIN" ls --home "$home" | wc -l >"$home/listed"
    end=$EPOCHREALTIME
    ((n < 0)) || our_ms+=("$(ms_between "$begin" "$end")")
  done
  # `ls -l` prints a line more: the total.
  (($(cat "$home/listed") == 10000 && $(cat "$home/names") == 10001)) || die 'ls: not all sessions were listed'
  PLACE=$home
  run "$WBHOME_BIN" ls --home "$home"
  local kib=$KIB
  run ls -l "$home/sessions"
  record job ls fs "$(findmnt -no FSTYPE -T "$home" | tail -n 1)" title '`wbhome ls`, 10,000 sessions' peer '`ls -l sessions`' kind ratio aim 1.5 \
    ours "$(median "${our_ms[@]}")" theirs "$(median "${peer_ms[@]}")" our_runs "$times runs" their_runs "$times runs" \
    our_mib "$(mib "$kib")" their_mib "$(mib "$KIB")" input "an index.json of $(($(stat -c %s "$home/index.json") / 1000)) kB" command ls
}

# The tab key at 10,000 sessions, as bash asks: `wbhome show 2024<TAB>`, a fifth of them; and with nothing typed, all.
here_complete() {
  local folder typed job title
  folder=$(mktemp -d "$BENCH_DIR/wbhome-race.XXXXXX")
  FOLDERS+=("$folder")
  ten_thousand "$folder/home"
  for job in complete complete-all; do
    typed=2024 title='the tab key at 10,000 sessions: `wbhome show 2024`'
    [[ $job = complete ]] || typed='' title='the tab key at 10,000 sessions, nothing typed'
    local n begin end our_ms=() times=$((RUNS < 5 ? 10 : 200))
    load_now
    for ((n = -5; n < times; n++)); do
      begin=$EPOCHREALTIME
      COMPLETE=bash WBHOME=$folder/home "$WBHOME_BIN" -- "wbhome show $typed" '' "$typed" 9 80 >"$folder/offered"
      end=$EPOCHREALTIME
      ((n < 0)) || our_ms+=("$(ms_between "$begin" "$end")")
    done
    (($(wc -l <"$folder/offered") > 1000)) || die "$job: too little was offered"
    PLACE=$folder
    run env COMPLETE=bash WBHOME="$folder/home" "$WBHOME_BIN" -- "wbhome show $typed" '' "$typed" 9 80
    record job "$job" fs - title "$title" peer - kind ms aim 20 ours "$(median "${our_ms[@]}")" theirs - \
      our_runs "$times runs" their_runs - our_mib "$(mib "$KIB")" their_mib '' \
      input "an index.json of $(($(stat -c %s "$folder/home/index.json") / 1000)) kB" command complete
  done
}

ms_between() {
  local us=$((${2/./} - ${1/./}))
  printf '%d.%03d' $((us / 1000)) $((us % 1000))
}

# ── results ───────────────────────────────────────────────────────────────────────────────────────────────────────────

readonly COLUMNS_OF_TSV="job fs title peer kind aim ours theirs our_runs their_runs our_mib their_mib input command
  date commit program machine tools load"

LOAD='' MEASURED=0
load_now() {
  LOAD=$(cut -d ' ' -f 1 /proc/loadavg)
  if awk -v l="$LOAD" 'BEGIN { exit !(l > 1) }'; then say "warning: the load is $LOAD: others work on this machine"; fi
}

commit() {
  local dirty=''
  [[ -z $(git status --porcelain -- src Cargo.toml Cargo.lock 2>/dev/null) ]] || dirty=' and changes'
  printf '%s%s' "$(git rev-parse --short HEAD 2>/dev/null || echo unknown)" "$dirty"
}
machine() {
  printf '%s cores (%s), %s MiB, Linux %s' "$(nproc)" \
    "$(awk -F ': ' '/^model name/ { print $2; exit }' /proc/cpuinfo)" \
    "$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)" "$(uname -r)"
}
tools() {
  printf '%s, %s, %s, %s' "$(rsync --version | awk 'NR == 1 { print $1, $3 }')" \
    "$(cp --version | awk 'NR == 1 { print "coreutils", $NF }')" \
    "$(sed --version | awk 'NR == 1 { print "sed", $NF }')" "$(grep --version | awk 'NR == 1 { print "grep", $NF }')"
  printf ', git %s, tar %s, zstd %s' "$(git version | awk '{ print $3 }')" "$(tar --version | awk 'NR == 1 { print $NF }')" \
    "$(zstd --version | grep -o 'v[0-9.]*' | head -n 1)"
  if command -v restic >/dev/null; then printf ', %s' "$(restic version | awk '{ print $1, $2 }')"; fi
  if command -v borg >/dev/null; then printf ', %s' "$(borg --version)"; fi
  if command -v logrotate >/dev/null; then printf ', %s' "$(logrotate --version 2>&1 | head -n 1)"; fi
}

# Puts a row into the table, in place of the one of the same job and filesystem.
record() { # COLUMN VALUE…
  declare -A row
  while (($#)); do
    row[$1]=$2
    shift 2
  done
  row[date]=$(date -u +%F) row[commit]=$(commit) row[program]=$("$WBHOME_BIN" --version | head -n 1)
  row[machine]=$(machine)${MOUNT:+, $MOUNT} row[tools]=$(tools) row[load]=$LOAD
  row[command]="RUNS=$RUNS SESSIONS=$SESSIONS LOG_MIB=$LOG_MIB benches/compare.sh ${row[command]}"
  local line='' column
  for column in $COLUMNS_OF_TSV; do line+=${line:+$'\t'}${row[$column]:--}; done
  mkdir -p "$(dirname "$TSV")"
  {
    # shellcheck disable=SC2086
    joined $COLUMNS_OF_TSV | tr , '\t'
    echo
    {
      [[ ! -f $TSV ]] || awk -F '\t' -v job="${row[job]}" -v fs="${row[fs]}" 'NR > 1 && !($1 == job && $2 == fs)' "$TSV"
      printf '%s\n' "$line"
    } | sort
  } >"$TSV.new"
  mv "$TSV.new" "$TSV"
  render
  MEASURED=$((MEASURED + 1))
}

render() {
  [[ -f $TSV ]] || die "$TSV: nothing was measured yet"
  awk -F '\t' -v order="migrate migrate-floor memory-files memory-log commit commit-again commit-size commit-packed archive archive-size archive-back archive-snapshots archive-snapshots-size archive-snapshots-back archive-large archive-large-size archive-large-back archive-large-memory archive-large-back-memory archive-one backup backup-borg backup-cold backup-cold-borg backup-again backup-again-borg backup-one backup-one-borg backup-memory restore restore-memory rotate rotate-written rotate-lost rotate-blocked rotate-blocked-large search search-often search-chinese search-archived search-archived-often start ls complete complete-all" '
    function time(ms) { return ms == "-" ? "—" : ms < 1000 ? ms " ms" : sprintf("%.2f s", ms / 1000) }
    function amount(value, kind) { return value == "-" ? "—" : kind == "MiB" || kind == "space" ? value " MiB" : kind == "lines" ? value " lines" : time(value) }
    function ratio(i) { return kind[i] == "ratio" || kind[i] == "space" }
    function where(i) { return fs[i] == "-" ? "" : " on " fs[i] }
    NR == 1 { next }
    {
      n++; job[n] = $1; fs[n] = $2; title[n] = $3; peer[n] = $4; kind[n] = $5; aim[n] = $6; ours[n] = $7; theirs[n] = $8
      our_runs[n] = $9; their_runs[n] = $10; our_mib[n] = $11; their_mib[n] = $12; input[n] = $13; command[n] = $14
      about[n] = $15 ", commit " $16 " (" $17 "); " $18 "; " $19 "; load before: " $20
      value[n] = ratio(n) ? ours[n] / theirs[n] : ours[n] + 0
      met[n] = value[n] <= aim[n] + 0
    }
    END {
      # The order of the jobs; those it does not know come last.
      m = split(order, known, " ")
      for (k = 1; k <= m; k++) for (i = 1; i <= n; i++) if (job[i] == known[k]) { at[++count] = i; seen[i] = 1 }
      for (i = 1; i <= n; i++) if (!seen[i]) at[++count] = i
      print "# Results\n"
      print "Made by `benches/compare.sh`, from `benches/results.tsv`: run that instead of editing this. `docs/performance.md` says how it is measured."
      print "Only ratios count: the machine is noisy. Medians; peak memory is that of the largest process in any run.\n"
      for (k = 1; k <= count; k++) { i = at[k]; if (!met[i]) short = short sprintf("- %s%s: %s, the aim is ≤ %s\n", title[i], where(i), ratio(i) ? sprintf("%.2f ×", value[i]) : ours[i] " " kind[i], aim[i] " " (ratio(i) ? "×" : kind[i])) }
      print short == "" ? "Every row reaches its aim.\n" : "**Short of their aim:**\n\n" short
      print "| job | on | ours | peer | its time | ours ÷ peer | aim | met | peak memory, ours / peer |"
      print "| --- | --- | ---: | --- | ---: | ---: | ---: | --- | ---: |"
      for (k = 1; k <= count; k++) {
        i = at[k]
        peak = our_mib[i] == "-" ? "—" : our_mib[i] " MiB" (their_mib[i] == "-" ? "" : " / " their_mib[i] " MiB")
        printf "| %s | %s | %s | %s | %s | %s | ≤ %s | %s | %s |\n", title[i], fs[i] == "-" ? "—" : fs[i], amount(ours[i], kind[i]),
          peer[i] == "-" ? "—" : peer[i], amount(theirs[i], kind[i] == "MiB" ? "ms" : kind[i]),
          ratio(i) ? sprintf("%.2f", value[i]) : "—", aim[i] (ratio(i) ? "" : " " kind[i]),
          met[i] ? "yes" : "**no**", peak
      }
      print "\n## How each was measured\n"
      for (k = 1; k <= count; k++) {
        i = at[k]
        print "- **" title[i] where(i) "**: `" command[i] "`"
        if (input[i] != "-") print "  - input: " input[i]
        print "  - runs: " (kind[i] == "MiB" ? "one, " time(our_runs[i]) : our_runs[i] ~ /runs/ ? our_runs[i] " a side" : "ours " our_runs[i] " ms; peer " their_runs[i] " ms")
        print "  - " about[i]
      }
    }' "$TSV" >"$MD.new"
  mv "$MD.new" "$MD"
}

# ── main ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

if ((RUNS < 5 || SESSIONS < 400 || LOG_MIB < 4769)); then # 5,000,000,000 bytes
  TSV=$BENCH_DIR/trial/results.tsv MD=$BENCH_DIR/trial/RESULTS.md
else
  TSV=benches/results.tsv MD=benches/RESULTS.md
fi
((RUNS >= 1 && SESSIONS >= 2)) || die "RUNS must be at least 1, SESSIONS at least 2"

if [[ ${1-} = render ]]; then
  render
  exit
fi
jobs=("$@")
if ((${#jobs[@]} == 0)); then read -ra jobs <<<"$ALL_JOBS"; fi
for job in "${jobs[@]}"; do
  declare -F "job_${job//-/_}" >/dev/null || declare -F "here_${job//-/_}" >/dev/null ||
    die "$job: no such job; there are: $ALL_JOBS"
done
for tool in cargo git rsync perl findmnt tar zstd /usr/bin/time; do
  command -v "$tool" >/dev/null || die "$tool is needed"
done

if [[ -n ${BUILD-yes} ]]; then cargo build --quiet --release --locked --bin wbhome --example scale_home; fi
mkdir -p "$BENCH_DIR"
at_places=()
for job in "${jobs[@]}"; do
  if declare -F "here_${job//-/_}" >/dev/null; then "here_${job//-/_}"; else at_places+=("$job"); fi
done
if ((${#at_places[@]})); then
  for place in $PLACES; do
    enter "$place" || continue
    for job in "${at_places[@]}"; do "job_${job//-/_}"; done
    done_with "$PLACE"
  done
fi
((MEASURED)) || die "nothing was measured"
say "written: $MD"
