import type Docker from 'dockerode';

/** The image that has a tag in an engine. */
export class TaggedImage {
  readonly #docker: Docker;
  readonly #name: string;

  constructor(docker: Docker, name: string) {
    this.#docker = docker;
    this.#name = name;
  }

  /** Null: none has it. */
  async inspect(): Promise<Docker.ImageInspectInfo | null> {
    try {
      return await this.#docker.getImage(this.#name).inspect();
    } catch (error) {
      if (statusOf(error) === 404) return null;
      throw error;
    }
  }

  /** Runs `make`, which gives the tag to another image, and removes the one that had it. */
  async replace(make: () => Promise<void>): Promise<Docker.ImageInspectInfo> {
    const before = await this.inspect();
    await make();
    const after = await this.inspect();
    if (after === null) throw new Error(`the engine reported success, but has no ${this.#name}`);
    if (before !== null && before.Id !== after.Id) await removeImage(this.#docker, before.Id);
    return after;
  }
}

/** One that is in use or gone is left as it is. */
export async function removeImage(docker: Docker, id: string): Promise<void> {
  try {
    await docker.getImage(id).remove();
  } catch (error) {
    if (![404, 409].includes(statusOf(error))) throw error;
  }
}

/** Reads an engine's progress stream to its end; an error inside it is an error, though the status was 200. */
export function finished(docker: Docker, stream: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve, reject) => {
    docker.modem.followProgress(
      stream,
      (error: Error | null) => (error === null ? resolve() : reject(error)),
      (event: { stream?: string }) => process.stderr.write(event.stream ?? ''),
    );
  });
}

const statusOf = (error: unknown): number => (error as { statusCode?: number }).statusCode ?? 0;
