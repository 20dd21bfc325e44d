#!/bin/sh
# Breaks one rule of the scheduler after the other in a copy of the tree, and looks whether `vcsim fuzz` finds it within
# 100,000 cycles. Prints the rows of the table in docs/spec/invariants.md. Arguments: names of patches, or their
# numbers; none: all. Exits with 1 if a broken rule is not found.
set -eu
cd "$(dirname "$0")/../.."
root=$PWD
work=$root/target/broken-rules
tree=$work/tree

# The copy has times of its own: a file that gets back an old time would not be built anew.
rm -rf "$tree"
mkdir -p "$tree"
git ls-files --cached --others --exclude-standard | tar --create --files-from=- | tar --extract --touch --directory "$tree"

build() {
    (cd "$tree" && CARGO_TARGET_DIR="$work/target" CARGO_PROFILE_DEV_DEBUG=false CARGO_PROFILE_DEV_OPT_LEVEL=1 \
        ${CARGO:-cargo} build --quiet --locked -p vc-sim --bin vcsim)
}

# A story has some 1,900 cycles. Those of seeds that 5 divides keep their leader: what is forgotten has time to show.
# The others after 20 are those of tests/cli/fuzz.rs, which have violated something once.
search() {
    "$work/target/debug/vcsim" fuzz --first \
        --seeds "1..20,42,52,66,78,540,640,650,775,3592,4069,13753,145,$(seq -s , 25 5 130)"
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
    for way in search_minutes search_one search; do
        found=$($way "$1") || true
        case "$found" in
        seed*) break ;;
        esac
    done
    case "$way" in
    search_minutes) minutes=' (1 minute)' ;;
    *) minutes='' ;;
    esac
    case "$found" in
    seed*)
        seed=${found#seed }
        cycles=${found#*, }
        text=${found#*: }
        echo "| \`$1\` | ${text%%:*} | ${seed%%,*}$minutes | ${cycles%% *} |"
        ;;
    *)
        echo "| \`$1\` | not found | - | - |"
        return 1
        ;;
    esac
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
