// The client of the official SDK.
import { Agents, PromptStream } from "@synadia-ai/agents";

const MOST = 10 * 60_000; // how long a stream may last, in milliseconds

export class Client {
  #nc;
  #agents;

  constructor(nc) {
    this.#nc = nc;
    this.#agents = new Agents({ nc });
  }

  async start() {
    await this.#agents.startTracking();
  }

  async discover() {
    const found = await this.#agents.discover();
    return Promise.all(found.map(async (a) => ({
      agent: a.agent, owner: a.owner, name: a.name, version: a.protocolVersion, instance: a.instanceId, subject: a.promptSubject,
      queue: a.promptEndpoint.queueGroup, max: a.promptEndpoint.maxPayloadBytes, attachments: a.promptEndpoint.attachmentsOk,
      alive: this.#agents.liveness(a.instanceId)?.isOnline ?? false,
      there: (await this.#agents.ping(a.instanceId)) && (await this.#agents.lookupInstance(a.instanceId))?.promptSubject === a.promptSubject,
    })));
  }

  // The SDK sends no fields but its own, so the body takes the place of its envelope.
  prompt(subject, body, silence) {
    const nc = {
      requestMany: (to, _, opts) => this.#nc.requestMany(to, typeof body === "string" ? body : JSON.stringify(body), opts),
      publish: (to, data) => this.#nc.publish(to, data),
      flush: () => this.#nc.flush(),
    };
    return new PromptStream(nc, subject, { prompt: "in place of the body" }, silence, MOST);
  }
}
