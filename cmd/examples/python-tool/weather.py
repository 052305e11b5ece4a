"""A tool: the arguments are JSON on standard input, the result is what it prints."""
import json
import os
import sys

arguments = json.load(sys.stdin)
city = arguments["city"]
if not city.isalpha():
    sys.exit(f"{city!r} is no city")  # exit code 1: the model reads this as the call's error
# The same call has the same key in every attempt: give it to services that accept one.
print("have a key:", bool(os.environ["REPRISE_IDEMPOTENCY_KEY"]), file=sys.stderr)
print(f"{city}: 21 degrees, sunny")
