import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import Docker from 'dockerode';

/**
 * The engine's side of building the sandbox image, over the engine's API alone. scripts/build-sandbox-image.sh is the
 * command for people.
 *
 *   sandbox-image.ts has CONTENT           exit code 0 if the image is there with this content
 *   sandbox-image.ts arch                  prints the engine's architecture, as Debian calls it
 *   sandbox-image.ts import CONTENT TAR    makes it of a root file system; prints the image's id
 *   sandbox-image.ts build CONTENT         makes it of images/sandbox/Dockerfile; prints the image's id
 *   sandbox-image.ts remove ID             removes it, if nothing uses it
 */
const IMAGE = 'sandbox-broker/sandbox';
const TAG = 'local';
const CONTENT = 'sandbox-broker.content';
const CONTEXT = join(import.meta.dirname, '../images/sandbox');

/** The metadata that an imported file system lacks; images/sandbox/Dockerfile says the same. */
const CHANGES = [
  'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/home/sandbox LANG=C.UTF-8',
  'USER 1000:1000',
  'WORKDIR /home/sandbox',
  'EXPOSE 8080',
  'CMD ["/usr/bin/python3", "-I", "-S", "/opt/sandbox/server.pyc"]',
];

const DEBIAN_ARCH: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64', armv7l: 'armhf' };

const docker = new Docker();

async function inspect(): Promise<Docker.ImageInspectInfo | null> {
  try {
    return await docker.getImage(`${IMAGE}:${TAG}`).inspect();
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return null;
    throw error;
  }
}

/** Reads an engine's progress stream to its end; an error inside it is an error, though the status was 200. */
function finished(stream: NodeJS.ReadableStream): Promise<void> {
  return new Promise((resolve, reject) => {
    docker.modem.followProgress(
      stream,
      (error: Error | null) => (error === null ? resolve() : reject(error)),
      (event: { stream?: string }) => process.stderr.write(event.stream ?? ''),
    );
  });
}

/** Removes an image by id; one that is in use or gone is left as it is. */
async function remove(id: string): Promise<void> {
  try {
    await docker.getImage(id).remove();
  } catch (error) {
    if (![404, 409].includes((error as { statusCode?: number }).statusCode ?? 0)) throw error;
  }
}

/** Runs `make`, which gives the tag to a new image, and removes the one that had it. */
async function replace(make: () => Promise<NodeJS.ReadableStream>): Promise<void> {
  const before = await inspect();
  await finished(await make());
  const after = await inspect();
  if (after === null) throw new Error(`the engine reported success, but has no ${IMAGE}:${TAG}`);
  if (before !== null && before.Id !== after.Id) await remove(before.Id);
  process.stdout.write(`${after.Id}\n`);
}

async function main(command: string | undefined, argument = '', tar = ''): Promise<void> {
  switch (command) {
    case 'has':
      if ((await inspect())?.Config.Labels?.[CONTENT] !== argument) process.exitCode = 1;
      return;
    case 'arch': {
      const { Architecture: name } = (await docker.info()) as { Architecture: string };
      process.stdout.write(`${DEBIAN_ARCH[name] ?? name}\n`);
      return;
    }
    case 'import':
      return replace(() =>
        docker.importImage(createReadStream(tar), {
          repo: IMAGE,
          tag: TAG,
          changes: [...CHANGES, `LABEL ${CONTENT}=${argument}`],
        }),
      );
    case 'build':
      return replace(() =>
        docker.buildImage(
          { context: CONTEXT, src: ['Dockerfile', 'server.py'] },
          { t: `${IMAGE}:${TAG}`, labels: { [CONTENT]: argument }, rm: true, forcerm: true },
        ),
      );
    case 'remove':
      return remove(argument);
    default:
      throw new Error('usage: sandbox-image.ts has CONTENT | arch | import CONTENT TAR | build CONTENT | remove ID');
  }
}

await main(...(process.argv.slice(2) as [string | undefined, string?, string?])).catch((error: Error) => {
  process.stderr.write(`sandbox image: ${error.message}\n`);
  process.exitCode = 2;
});
