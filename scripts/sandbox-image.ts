import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import Docker from 'dockerode';
import { finished, removeImage, TaggedImage } from './tagged-image.ts';

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
const image = new TaggedImage(docker, `${IMAGE}:${TAG}`);

async function replace(make: () => Promise<NodeJS.ReadableStream>): Promise<void> {
  const { Id: id } = await image.replace(async () => finished(docker, await make()));
  process.stdout.write(`${id}\n`);
}

async function main(command: string | undefined, argument = '', tar = ''): Promise<void> {
  switch (command) {
    case 'has':
      if ((await image.inspect())?.Config.Labels?.[CONTENT] !== argument) process.exitCode = 1;
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
      return removeImage(docker, argument);
    default:
      throw new Error('usage: sandbox-image.ts has CONTENT | arch | import CONTENT TAR | build CONTENT | remove ID');
  }
}

await main(...(process.argv.slice(2) as [string | undefined, string?, string?])).catch((error: Error) => {
  process.stderr.write(`sandbox image: ${error.message}\n`);
  process.exitCode = 2;
});
