// A client of the protocol that needs nothing but a connection: for where the SDK cannot be installed. It does
// what version 0.3 asks of a caller.
export class Client {
  #nc;
  #beats = new Map();

  constructor(nc) {
    this.#nc = nc;
  }

  async start() {
    this.#nc.subscribe("agents.hb.>", { callback: (_, m) => this.#beats.set(m.json().instance_id, m.json()) });
    await this.#nc.flush();
  }

  async #ask(verb, instance) {
    const found = [];
    const subject = instance ? `$SRV.${verb}.agents.${instance}` : `$SRV.${verb}.agents`;
    for await (const m of await this.#nc.requestMany(subject, "", { strategy: "stall", maxWait: 2_000, stall: 750 })) {
      found.push(m.json());
    }
    return found;
  }

  async discover() {
    const found = [];
    for (const info of await this.#ask("INFO")) {
      const prompt = info.endpoints.find((e) => e.name === "prompt");
      if (!prompt) continue;
      const beat = this.#beats.get(info.id);
      found.push({
        agent: info.metadata.agent, owner: info.metadata.owner, name: prompt.subject.split(".")[4], version: info.metadata.protocol_version,
        instance: info.id, subject: prompt.subject, queue: prompt.queue_group, max: 1024 * Number(/^(\d+)KB$/.exec(prompt.metadata.max_payload)?.[1]),
        attachments: prompt.metadata.attachments_ok === "true",
        alive: beat !== undefined && Date.now() - Date.parse(beat.ts) < 3_000 * beat.interval_s,
        there: (await this.#ask("PING", info.id)).length === 1,
      });
    }
    return found;
  }

  prompt(subject, body, silence) {
    return new Stream(this.#nc, subject, typeof body === "string" ? body : JSON.stringify(body), silence);
  }
}

class Stream {
  #nc;
  #sub;
  #cancelled = false;
  #late;

  constructor(nc, subject, body, silence) {
    this.#nc = nc;
    const reply = `_INBOX.protocol.${crypto.randomUUID()}`;
    this.#sub = nc.subscribe(reply);
    nc.publish(subject, body, { reply });
    this.#wait(silence);
  }

  #wait(silence) {
    clearTimeout(this.#late);
    this.#late = setTimeout(() => this.#sub.unsubscribe(), silence);
  }

  cancel() {
    this.#cancelled = true;
    this.#sub.unsubscribe();
  }

  async *[Symbol.asyncIterator]() {
    try {
      for await (const m of this.#sub) {
        this.#late.refresh();
        const code = m.headers?.get("Nats-Service-Error-Code");
        if (code) {
          throw Object.assign(new Error(m.headers.get("Nats-Service-Error")), { name: "ServiceError", code: Number(code) });
        }
        if (m.data.length === 0) {
          if (m.headers?.code === 503) throw new Error("no responders");
          yield { type: "status", status: "done" };
          return;
        }
        const { type, data } = m.json();
        switch (type) {
          case "response":
            yield { type, text: typeof data === "string" ? data : data.text };
            break;
          case "status":
            yield { type, status: data };
            break;
          case "query":
            yield { type, id: data.id, prompt: data.prompt, reply: async (answer) => this.#nc.publish(data.reply_subject, answer) };
        }
      }
      if (!this.#cancelled) throw Object.assign(new Error("nothing came for too long"), { name: "StreamStalledError" });
    } finally {
      clearTimeout(this.#late);
      this.#sub.unsubscribe();
    }
  }
}
