#!/usr/bin/env bash
# The main promise, from outside: ask an agent, kill the node without warning in the
# middle of a tool, start it again: everything is still there, and the turn completes.
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
	"$bin" dev --listen 127.0.0.1:0 --http off --data "$work/data" --config "$work/reprise.yaml" >"$work/out" 2>&1 &
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

# The program of the tool writes a line for each time it is started, and ends when it may.
cat >"$work/reprise.yaml" <<END
agents:
  assistant: {model: demo/demo, tools: [calculator, report]}
tools:
  report:
    command: [sh, -c, 'echo started >>"$work/runs"; until [ -e "$work/go" ] || [ ! -d "$work" ]; do sleep 0.1; done; echo 42 tickets were closed']
    description: Write the weekly report
    parameters: {type: object}
    on_unknown: rerun
END

start
answer=$("$bin" ask --data "$work/data" assistant/main "What is 17 times 3?")
expect "the answer" "$answer" "51"

"$bin" send --data "$work/data" assistant/weekly "Write the weekly report" --id monday >/dev/null
deadline=$((SECONDS + patience))
until [ -s "$work/runs" ]; do
	[ "$SECONDS" -lt "$deadline" ] || fail "the tool was not started within $patience s"
	sleep 0.1
done

crash
touch "$work/go"
start
history=$("$bin" history --data "$work/data" assistant/main -o json)
expect "the history after a crash" "$history" "17 times 3"
expect "the history after a crash" "$history" "51"

answer=$("$bin" ask --data "$work/data" assistant/main "What is 6 times 7?")
expect "the answer after a crash" "$answer" "42"

# The same id again: no second turn, but the answer of the one that was cut off.
answer=$("$bin" ask --data "$work/data" assistant/weekly "Write the weekly report" --id monday)
expect "the answer of the turn that was cut off" "$answer" "42 tickets were closed"
events=$("$bin" events --data "$work/data" assistant/weekly -o json)
for type in input.accepted turn.completed; do
	count=$(grep -c "\"type\":\"$type\"" <<<"$events" || true)
	[ "$count" = 1 ] || fail "there are $count events $type of the turn that was cut off, want 1: $events"
done
count=$(wc -l <"$work/runs")
[ "$count" -eq 2 ] || fail "the tool ran $count times, want 2: before the crash and after it"

echo "smoke: the node was killed in the middle of a turn; history is whole and the turn has ended once"
