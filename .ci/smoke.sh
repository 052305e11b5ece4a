#!/usr/bin/env bash
# The main promise, from outside: ask an agent, kill the node without warning,
# start it again, and everything is still there.
#
#   .ci/smoke.sh bin/reprise
set -euo pipefail

bin=${1:?the path of the reprise binary}
ready=${READY:-ready}      # in the line that dev prints when it can be used
patience=${PATIENCE:-180}  # seconds until a start counts as failed

work=$(mktemp -d)
node=""
reader=""

finish() {
	status=$?
	trap - EXIT
	[ -z "$node" ] || { kill -9 "$node" 2>/dev/null || true; wait "$node" 2>/dev/null || true; }
	[ -z "$reader" ] || wait "$reader" 2>/dev/null || true
	if [ "$status" -ne 0 ] && [ -f "$work/log" ]; then
		echo "--- what the node printed" >&2
		cat "$work/log" >&2
	fi
	rm -rf "$work"
	exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM

fail() {
	echo "smoke: $*" >&2
	exit 1
}

# start runs a node and returns when it says that it is ready.
start() {
	rm -f "$work/out"
	mkfifo "$work/out"
	"$bin" dev --listen 127.0.0.1:0 --data "$work/data" >"$work/out" 2>&1 &
	node=$!
	exec 3<"$work/out"
	local line deadline=$((SECONDS + patience))
	while true; do
		if ! IFS= read -r -t "$((deadline > SECONDS ? deadline - SECONDS : 1))" -u 3 line; then
			fail "the node ended, or was not ready within $patience s"
		fi
		printf '%s\n' "$line" >>"$work/log"
		if [[ ${line,,} =~ (^|[^a-z])$ready ]]; then break; fi
		[ "$SECONDS" -lt "$deadline" ] || fail "the node was not ready within $patience s"
	done
	cat <&3 >>"$work/log" & # so that the node never waits for a reader
	reader=$!
	exec 3<&-
}

# crash ends the node as a power cut would.
crash() {
	kill -9 "$node"
	wait "$node" 2>/dev/null || true
	node=""
	wait "$reader"
	reader=""
}

expect() { # what, text, part
	[[ $2 == *"$3"* ]] || fail "$1 should hold \"$3\", but is: $2"
}

start
answer=$("$bin" ask --data "$work/data" assistant/main "What is 17 times 3?")
expect "the answer" "$answer" "51"

crash
start
history=$("$bin" history --data "$work/data" assistant/main -o json)
expect "the history after a crash" "$history" "17 times 3"
expect "the history after a crash" "$history" "51"

answer=$("$bin" ask --data "$work/data" assistant/main "What is 6 times 7?")
expect "the answer after a crash" "$answer" "42"

echo "smoke: the agent answered, the node was killed, and its history is whole"
