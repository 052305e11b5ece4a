// Drives a client of the Synadia Agent Protocol. It reads one command in JSON from each line of its
// standard input and writes one answer, or one message of a stream, as a line of JSON.
//
//   node client.mjs URL sdk|plain
import { createInterface } from "node:readline";
import { connect } from "@nats-io/transport-node";

const [url, which] = process.argv.slice(2);
const { Client } = await import(which === "sdk" ? "./sdk.mjs" : "./plain.mjs");
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

const nc = await connect({ servers: url, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
const client = new Client(nc);
await client.start();
say({ ready: which });

const streams = new Map();

async function prompt({ id, subject, body, silence }) {
  try {
    const stream = client.prompt(subject, body, silence);
    streams.set(id, { stream, queries: new Map() });
    for await (const m of stream) {
      if (m.type === "query") {
        streams.get(id)?.queries.set(m.id, m);
      }
      say({ id, type: m.type, text: m.text ?? m.status ?? m.prompt, query: m.type === "query" ? m.id : undefined });
    }
    say({ id, type: "end" });
  } catch (e) {
    say({ id, type: "error", name: e.name, code: e.code, text: e.description ?? e.message });
  }
  streams.delete(id);
}

const commands = {
  prompt,
  discover: async ({ id }) => say({ id, agents: await client.discover() }),
  answer: async ({ stream, query, body }) => streams.get(stream).queries.get(query).reply(typeof body === "string" ? body : JSON.stringify(body)),
  stop: async ({ stream }) => streams.get(stream)?.stream.cancel(),
};

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  void commands[command.do](command);
}
process.exit(0); // the test is over
