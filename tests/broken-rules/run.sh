#!/bin/sh
# Breaks one rule of the scheduler after the other in a copy of the tree, and looks whether `vcsim fuzz` finds it within
# 100,000 cycles, counted over all stories that are played for it. Prints the rows of the table in
# docs/spec/invariants.md. Arguments: names of patches, or their numbers; none: all. Exits with 1 if a broken rule is
# not found.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
work=$root/target/broken-rules
tree=$work/tree
limit=100000

# The copy has times of its own: a file that gets back an old time would not be built anew.
rm -rf "$tree"
mkdir -p "$tree"
git ls-files --cached --others --exclude-standard | tar --create --files-from=- | tar --extract --touch --directory "$tree"

build() {
    (cd "$tree" && CARGO_TARGET_DIR="$work/target" CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_OPT_LEVEL=1 \
        ${CARGO:-cargo} build --quiet --locked -p vc-sim --bin vcsim)
}

# Prints the seeds of stories of so many minutes that have violated something once, without those that are played anyway.
kept_seeds() {
    awk -v minutes="$1" '$1 == minutes && 20 < $2 { print $2 }' "$root/crates/sim/tests/cli/kept_seeds.txt" |
        paste -s -d , -
}

# A story has some 1,900 cycles.
search() {
    "$work/target/debug/vcsim" fuzz --first --seeds "1..20,145,$(kept_seeds 10)"
}

search_kept_minutes() {
    "$work/target/debug/vcsim" fuzz --first --minutes 1 --seeds "$(kept_seeds 1)"
}

# Stories of seeds that 5 divides keep their leader: what is forgotten has time to show.
search_more() {
    "$work/target/debug/vcsim" fuzz --first --seeds "$(seq -s , 25 5 130)"
}

# A story of ten minutes, for a rule that those do not find broken.
search_one() {
    case "$1" in
    35-*) seeds=1600 ;;
    *) return 1 ;;
    esac
    "$work/target/debug/vcsim" fuzz --first --seeds "$seeds"
}

# Stories of one minute, for rules that those of ten minutes do not find broken.
search_minutes() {
    case "$1" in
    43-*) seeds=5836 ;;
    44-*) seeds=1088 ;;
    45-*) seeds=3021 ;;
    46-*) seeds=5342 ;;
    5[1-3]-*) seeds=$(seq -s , 9 17 1500) ;; # They keep the usage of fairshare.
    54-*) seeds=$(seq -s , 12 19 1500) ;; # They have HyperNodes.
    58-*) seeds=$(seq -s , 37 37 1500) ;; # They have GPUs.
    *) return 1 ;;
    esac
    "$work/target/debug/vcsim" fuzz --first --minutes 1 --seeds "$seeds"
}

# Prints the row of a patch. False: it is not found.
try() {
    if ! build 2>"$work/$1.log"; then
        echo "| \`$1\` | does not build: $work/$1.log | - | - |"
        return 1
    fi
    cycles=0
    found=
    for way in search_minutes search_one search search_kept_minutes search_more; do
        line=$($way "$1") || true
        case "$line" in
        'seed '*) played=${line#*, } ;;
        *' stories, '*) played=${line#* stories, } ;;
        *) continue ;;
        esac
        cycles=$((cycles + ${played%% *}))
        if [ "$cycles" -gt "$limit" ]; then
            break
        fi
        case "$line" in
        'seed '*)
            found=$line
            break
            ;;
        esac
    done
    if [ -z "$found" ]; then
        echo "| \`$1\` | not found within $limit steps | - | $cycles |"
        return 1
    fi
    case "$way" in
    search_minutes | search_kept_minutes) minutes=' (1 minute)' ;;
    *) minutes='' ;;
    esac
    seed=${found#seed }
    text=${found#*: }
    echo "| \`$1\` | ${text%%:*} | ${seed%%,*}$minutes | $cycles |"
}

failed=0
echo '| Broken rule | Violated | Seed | Cycles |'
echo '|---|---|---|---|'
for file in "$root"/tests/broken-rules/*.patch; do
    name=$(basename "$file" .patch)
    case " $* " in
    '  ' | *" $name "* | *" ${name%%-*} "*) ;;
    *) continue ;;
    esac
    patch --quiet --directory "$tree" --strip=1 <"$file"
    try "$name" || failed=1
    patch --quiet --directory "$tree" --strip=1 --reverse <"$file"
done
exit $failed
