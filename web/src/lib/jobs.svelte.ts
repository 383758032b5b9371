import { get, message, post, remove } from "./api";
import { models } from "./models.svelte";

/** A command that the server runs in the background. */
export interface Job {
  id: number;
  verb: string;
  title: string;
  command: string;
  details: Record<string, unknown>;
  resumes: boolean; // whether it can be resumed
  status: "waiting" | "running" | "stopping" | "stopped" | "finished" | "failed";
  task: string;
  unit: string;
  share: number | null;
  speed: number | null; // units per second
  left: number | null; // seconds
  seconds: number;
  metrics: Record<string, number>;
  curve: { x: number[]; y: number[] };
  notes: string[];
  error: string;
  result: unknown;
}

const EVERY = 700; // polling interval in milliseconds

class Jobs {
  all = $state.raw<Job[]>([]);
  error = $state("");
  #timer: ReturnType<typeof setTimeout> | undefined;
  #ended = new Map<number, () => void>();

  of(verb: string): Job[] {
    return this.all.filter((job) => job.verb === verb);
  }

  /** Polls once, and repeatedly while any job is active. */
  async look(): Promise<void> {
    clearTimeout(this.#timer);
    try {
      const before = new Map(this.all.map((job) => [job.id, job.status]));
      this.all = (await get<{ jobs: Job[] }>("/api/jobs")).jobs;
      this.error = "";
      for (const job of this.all) {
        if (job.status !== "finished" || before.get(job.id) === "finished") continue;
        await models.load(); // the job may have added one
        this.#ended.get(job.id)?.();
        this.#ended.delete(job.id);
      }
    } catch (error) {
      this.error = message(error);
    }
    if (this.all.some((job) => ["waiting", "running", "stopping"].includes(job.status)))
      this.#timer = setTimeout(() => this.look(), EVERY);
  }

  /** Starts a job; `then` is called once it has succeeded. */
  async start(path: string, body: unknown, then?: (job: Job) => void): Promise<Job> {
    const job = await post<Job>(path, body);
    if (then) this.#ended.set(job.id, () => then(this.all.find((one) => one.id === job.id) ?? job));
    await this.look();
    return job;
  }

  async stop(id: number): Promise<void> {
    await post(`/api/jobs/${id}/stop`);
    await this.look();
  }

  async resume(id: number): Promise<void> {
    await post(`/api/jobs/${id}/resume`);
    await this.look();
  }

  async forget(id: number): Promise<void> {
    await remove(`/api/jobs/${id}`);
    await this.look();
  }
}

export const jobs = new Jobs();
